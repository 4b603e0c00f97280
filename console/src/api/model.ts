import type { components } from "./schema";

/** The nouns of the API as pages speak of them: names for the types that are generated from its description. */

export type Schemas = components["schemas"];

export type Role = "reader" | "writer" | "admin";

export interface Grant {
  role: Role | "engine";
  namespace: string;
  table: string;
}

export interface Session {
  name: string;
  roles: readonly Grant[];
  is_admin: boolean;
  by: "local" | "link" | "credential" | "token";
  expires_at: number | null;
}

export type Process = Schemas["ProcessAnswer"];

export type Table = Schemas["TableAnswer"];

export type Statement = Schemas["StatementAnswer"];

export interface Catalog {
  name: string;
  state: string;
  tables: Readonly<Record<string, number>>;
}

export interface ExportSummary {
  name: string;
  paused: boolean;
  runs: Readonly<Record<string, number>>;
}

export interface Attention {
  kind: string;
  name: string;
  state: string;
  reason: string | null;
  remedy: string | null;
  action: { label: string; method: string; path: string; body: unknown } | null;
}

/** The small state of all there is: what `GET /api/v1/status` answers, and what the live stream sends. */
export interface Status {
  version: string;
  cluster: string;
  addresses: Readonly<Record<string, string>>;
  processes: readonly Process[];
  tables: readonly Table[];
  statements: readonly Statement[];
  catalogs: readonly Catalog[];
  exports: readonly ExportSummary[];
  attention: readonly Attention[];
}

export interface Figures {
  rate: number | null;
  lag: number | null;
  freshness: number | null;
}

/** One moment's figures, in total and by table and statement. */
export interface Sample {
  at: number;
  total: Figures;
  tables: Readonly<Record<string, Figures>>;
  statements: Readonly<Record<string, Figures>>;
}
