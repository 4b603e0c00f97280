import { Page } from "@/components/Page";

export function Statements() {
  return <Page title="Statements">{null}</Page>;
}
