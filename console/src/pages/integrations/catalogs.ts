import type { CatalogKind, CatalogRequest } from "@/api/catalogs";
import { shellWord } from "@/lib/quote";

/** What is asked about an outside catalog when it is added, and what is made of the answers. */

export interface CatalogField {
  option: string;
  label: string;
  hint?: string;
  placeholder?: string;
  required?: boolean;
  /** Shown when more is asked for. */
  rare?: boolean;
}

const SECRET_HINT = "The name of a secret of the configuration (HEADGATE_SECRETS__NAME, or secrets_file): never the secret itself.";

export const FIELDS: Readonly<Record<CatalogKind, readonly CatalogField[]>> = {
  glue: [
    { option: "region", label: "Region", placeholder: "eu-west-1" },
    {
      option: "role_arn",
      label: "IAM role",
      placeholder: "arn:aws:iam::123456789012:role/lake",
      hint: "The role that Glue is asked as. The policies to paste are shown when it is added.",
    },
    { option: "external_id", label: "External id", hint: "Of the role's trust policy; without one, one is made." },
    { option: "database", label: "Database", hint: "Made when it is missing; by default it has the cluster's name." },
    { option: "storage", label: "Ask as the role of a storage location", rare: true },
    { option: "access_key_id", label: "Access key id", rare: true },
    { option: "secret", label: "Secret of the access key", hint: SECRET_HINT, rare: true },
    { option: "profile", label: "AWS profile", rare: true },
    { option: "catalog_id", label: "Account of the catalog", placeholder: "123456789012", rare: true },
    { option: "endpoint", label: "Endpoint", placeholder: "https://…", hint: "Instead of AWS's own address.", rare: true },
  ],
  unity: [
    { option: "url", label: "Workspace URL", placeholder: "https://dbc-1.cloud.databricks.com", required: true },
    { option: "catalog", label: "Unity catalog", placeholder: "main", hint: "It must be there.", required: true },
    { option: "client_id", label: "Client id", hint: "Of the service principal.", required: true },
    { option: "secret", label: "Client secret", placeholder: "databricks", hint: SECRET_HINT, required: true },
    { option: "schema", label: "Schema", hint: "Made when it is missing; by default it has the cluster's name." },
    { option: "token_url", label: "Token URL", hint: "By default the workspace's, /oidc/v1/token.", rare: true },
    { option: "scope", label: "Scope", placeholder: "all-apis", rare: true },
  ],
  rest: [
    { option: "uri", label: "Catalog URI", placeholder: "https://catalog.example.org/iceberg", required: true },
    { option: "warehouse", label: "Warehouse" },
    { option: "namespace", label: "Namespace", hint: "Made when it is missing; by default it has the cluster's name." },
    { option: "client_id", label: "Client id", hint: "Where the catalog asks for one." },
    { option: "secret", label: "Client secret", hint: SECRET_HINT },
    { option: "token_url", label: "Token URL", hint: "By default the catalog's, /v1/oauth/tokens.", rare: true },
    { option: "scope", label: "Scope", placeholder: "catalog", rare: true },
  ],
};

export const KIND_NAMES: Readonly<Record<CatalogKind, string>> = {
  glue: "AWS Glue",
  unity: "Unity Catalog",
  rest: "Iceberg REST",
};

export function isCatalogKind(text: string): text is CatalogKind {
  return text in FIELDS;
}

/** What was typed, by option; what is empty was not said. */
export type Answers = Readonly<Record<string, string>>;

function said(kind: CatalogKind, answers: Answers): [CatalogField, string][] {
  return FIELDS[kind].flatMap((field) => {
    const text = answers[field.option]?.trim() ?? "";
    return text === "" ? [] : [[field, text] as [CatalogField, string]];
  });
}

/** What is still missing, by the label of its field. */
export function missing(kind: CatalogKind, name: string, answers: Answers): string[] {
  const lacking = FIELDS[kind].filter((field) => field.required && !answers[field.option]?.trim());
  return [...(name.trim() === "" ? ["Name"] : []), ...lacking.map((field) => field.label)];
}

export function catalogRequest(kind: CatalogKind, name: string, answers: Answers): CatalogRequest {
  const options = Object.fromEntries(said(kind, answers).map(([field, text]) => [field.option, text]));
  return { name: name.trim(), kind, options };
}

/** The command that does the same. */
export function catalogCommand(kind: CatalogKind, name: string, answers: Answers): string {
  const options = said(kind, answers).map(
    ([field, text]) => `--${field.option.replaceAll("_", "-")} ${shellWord(text)}`,
  );
  return [`headgate catalog add ${kind} ${shellWord(name.trim() || "NAME")}`, ...options].join(" \\\n    ");
}
