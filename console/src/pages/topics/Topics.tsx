import { Page } from "@/components/Page";

export function Topics() {
  return <Page title="Topics">{null}</Page>;
}
