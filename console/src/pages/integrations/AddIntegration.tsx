import { useParams } from "@tanstack/react-router";
import { useCan } from "@/api/session";
import { AdminsOnly } from "@/shell/AdminsOnly";
import { NotFound } from "@/shell/NotFound";
import { AddCatalog } from "./AddCatalog";
import { AddCredential } from "./AddCredential";
import { AddLocation } from "./AddLocation";
import "./integrations.css";

/** The form that adds a catalog, a storage location or a credential. */
export function AddIntegration() {
  const { kind = "" } = useParams({ strict: false });
  const can = useCan();
  if (!can("admin")) return <AdminsOnly title="Integrations" what="Integrations" />;
  switch (kind) {
    case "catalogs":
      return <AddCatalog />;
    case "storage":
      return <AddLocation />;
    case "credentials":
      return <AddCredential />;
    default:
      return <NotFound />;
  }
}
