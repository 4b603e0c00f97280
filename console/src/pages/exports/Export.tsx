import { Page } from "@/components/Page";

export function Export() {
  return <Page title="Export">{null}</Page>;
}
