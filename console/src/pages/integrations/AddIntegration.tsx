import { Page } from "@/components/Page";

export function AddIntegration() {
  return <Page title="Add an integration">{null}</Page>;
}
