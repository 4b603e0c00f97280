import { Page } from "@/components/Page";

export function EnableTable() {
  return <Page title="Enable a topic as table">{null}</Page>;
}
