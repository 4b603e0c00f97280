import { Page } from "@/components/Page";

export function Activity() {
  return <Page title="Activity">{null}</Page>;
}
