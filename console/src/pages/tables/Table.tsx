import { Page } from "@/components/Page";

export function Table() {
  return <Page title="Table">{null}</Page>;
}
