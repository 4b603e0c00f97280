import { useParams } from "@tanstack/react-router";
import { useCan } from "@/api/session";
import { NotFound } from "@/shell/NotFound";
import { AdminsOnly } from "@/shell/AdminsOnly";
import { CatalogPage } from "./CatalogPage";
import { CredentialPage } from "./CredentialPage";
import { LocationPage } from "./LocationPage";
import "./integrations.css";

/** One catalog, storage location or credential. */
export function Integration() {
  const { kind = "", name = "" } = useParams({ strict: false });
  const can = useCan();
  if (!can("admin")) return <AdminsOnly title="Integrations" what="Integrations" />;
  switch (kind) {
    case "catalogs":
      return <CatalogPage key={name} name={name} />;
    case "storage":
      return <LocationPage key={name} name={name} />;
    case "credentials":
      return <CredentialPage key={name} name={name} />;
    default:
      return <NotFound />;
  }
}
