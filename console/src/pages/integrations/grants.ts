import type { CredentialRequest } from "@/api/credentials";
import { shellWord } from "@/lib/quote";

/** What a credential may do: roles on what patterns of namespaces and tables match. */

export const ROLES = ["reader", "writer", "admin", "engine"] as const;
export type GrantRole = (typeof ROLES)[number];

export interface GrantRow {
  role: GrantRole;
  namespace: string;
  table: string;
}

export interface ShownGrant extends GrantRow {
  everywhere: boolean;
}

/** `writer:local:shop.*`, as the API writes it; a role alone is for everything. */
export function parseGrant(text: string): ShownGrant | null {
  const [role = "", namespace = "*", ...rest] = text.split(":");
  if (!isRole(role)) return null;
  const table = rest.length === 0 ? "*" : rest.join(":");
  return { role, namespace, table, everywhere: namespace === "*" && table === "*" };
}

function isRole(text: string): text is GrantRole {
  return (ROLES as readonly string[]).includes(text);
}

/** In words: `writer of shop.* in local`. */
export function grantWords(text: string): string {
  const grant = parseGrant(text);
  if (grant === null) return text;
  if (grant.everywhere) return `${grant.role} of everything`;
  const tables = grant.table === "*" ? "everything" : grant.table;
  return grant.namespace === "*" ? `${grant.role} of ${tables}` : `${grant.role} of ${tables} in ${grant.namespace}`;
}

const pattern = (text: string): string => text.trim() || "*";

function grantText({ role, namespace, table }: GrantRow): string {
  return `${role}:${pattern(namespace)}:${pattern(table)}`;
}

export function credentialRequest(name: string, rows: readonly GrantRow[]): CredentialRequest {
  const [first, ...others] = rows;
  return {
    name: name.trim(),
    role: first?.role ?? null,
    namespace: pattern(first?.namespace ?? ""),
    table: pattern(first?.table ?? ""),
    grants: others.map(grantText),
  };
}

/** The command that does the same. */
export function credentialCommand(name: string, rows: readonly GrantRow[]): string {
  const { role, namespace, table, grants } = credentialRequest(name, rows);
  return [
    `headgate credentials create ${shellWord(name.trim() || "NAME")}`,
    ...(role ? [`--role ${role}`] : []),
    ...(namespace === "*" ? [] : [`--namespace ${shellWord(namespace)}`]),
    ...(table === "*" ? [] : [`--table ${shellWord(table)}`]),
    ...(grants ?? []).map((grant) => `--grant ${shellWord(grant)}`),
  ].join(" ");
}
