/** The nouns of the API as pages speak of them. */

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

export interface Process {
  name: string;
  state: string;
  pid: number | null;
  beat_age: number | null;
  detail: Readonly<Record<string, unknown>>;
}

export interface Table {
  topic: string;
  state: string;
  reason: string | null;
  since: number;
  desired: string;
  position: Readonly<Record<string, number>> | null;
  lag: number | null;
  freshness: number | null;
  rows: number | null;
  files: number | null;
  bytes: number | null;
  records_materialized: number | null;
  files_created: number | null;
  kept_bytes: number | null;
  delta_log_bytes: number | null;
  dead_letters_count: number | null;
  last_compaction_at: number | null;
  dead_letters: { name: string; exists: boolean } | null;
  updated_at: number;
}

export interface Statement {
  name: string;
  kind: string;
  state: string;
  reason: string | null;
  since: number;
  desired: string;
  rows_in: number | null;
  rows_out: number | null;
  late_rows: number | null;
  bad_rows: number | null;
  lag: number | null;
  state_rows: number | null;
  state_bytes: number | null;
  batch_seconds: number | null;
  watermark: unknown;
  waiting: string | null;
  updated_at: number;
}

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
