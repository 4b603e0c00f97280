import { Page } from "@/components/Page";

export function Topic() {
  return <Page title="Topic">{null}</Page>;
}
