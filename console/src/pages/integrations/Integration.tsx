import { Page } from "@/components/Page";

export function Integration() {
  return <Page title="Integration">{null}</Page>;
}
