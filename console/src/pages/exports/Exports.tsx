import { Page } from "@/components/Page";

export function Exports() {
  return <Page title="Exports">{null}</Page>;
}
