import { Page } from "@/components/Page";

export function Statement() {
  return <Page title="Statement">{null}</Page>;
}
