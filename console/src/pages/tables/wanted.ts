import { yamlList, yamlText, shellWord } from "@/lib/quote";
import type { components } from "@/api/schema";

/** What is wanted of a table: what the wizard asks, and the request, command and YAML that say the same. */

export type TableRequest = components["schemas"]["TableRequest"];
export type StorageRequest = components["schemas"]["StorageRequest"];

export type Formats = "iceberg" | "delta" | "both";
export type StorageKind = "managed" | "named" | "bucket";
export type Mode = "auto" | "append" | "upsert" | "scd2";
export type Layout = "default" | "none" | "fields";
export type OnError = "suspend" | "skip" | "log";

export const TRANSFORMS = ["day", "hour", "month", "year", "bucket", "truncate", "identity"] as const;
export type Transform = (typeof TRANSFORMS)[number];

/** One field of a layout: `day(at)`, `bucket(16, id)`. */
export interface PartitionField {
  transform: Transform;
  column: string;
  /** Of buckets and prefixes: how many, how long. */
  size: string;
}

export interface Wanted {
  topic: string;
  formats: Formats;
  storage: StorageKind;
  /** The named location; of a new one its name, where it is, and whose role it is reached with. */
  location: string;
  bucket: string;
  role: string;
  mode: Mode;
  key: string;
  start: string;
  layout: Layout;
  partition: readonly PartitionField[];
  eventTime: string;
  freshness: string;
  onError: OnError;
  deadLetters: string;
  metadata: readonly string[];
  readers: readonly string[];
  valueFormat: string;
  valueColumns: string;
  keyFormat: string;
  keyColumns: string;
  tombstones: string;
  envelope: string;
  recordTypes: string;
}

export const METADATA = [
  "topic",
  "partition",
  "offset",
  "timestamp",
  "timestamp-type",
  "key",
  "headers",
  "leader-epoch",
  "schema-id",
] as const;

/** The engines that a table can be written for, as `--readers` names them. */
export const READERS = [
  "spark",
  "duckdb",
  "pyiceberg",
  "trino",
  "flink",
  "databricks",
  "snowflake",
  "delta-rs",
  "polars",
  "athena",
  "redshift",
  "bigquery",
  "clickhouse",
  "doris",
  "dremio",
  "starrocks",
  "other",
] as const;

const STANDARD_METADATA: readonly string[] = ["timestamp"];

export const NOTHING_SAID: Wanted = {
  topic: "",
  formats: "iceberg",
  storage: "managed",
  location: "",
  bucket: "",
  role: "",
  mode: "auto",
  key: "",
  start: "earliest",
  layout: "default",
  partition: [],
  eventTime: "",
  freshness: "",
  onError: "suspend",
  deadLetters: "",
  metadata: STANDARD_METADATA,
  readers: [],
  valueFormat: "auto",
  valueColumns: "",
  keyFormat: "",
  keyColumns: "",
  tombstones: "bad",
  envelope: "auto",
  recordTypes: "single",
};

const FORMATS: Record<Formats, readonly string[]> = {
  iceberg: ["iceberg"],
  delta: ["delta"],
  both: ["iceberg", "delta"],
};

/** What is asked of the API: what stays as it is by default is not said. */
export function requestOf(wanted: Wanted): TableRequest {
  const said: Record<string, unknown> = { topic: wanted.topic };
  const say = (name: keyof TableRequest, value: unknown, standard?: unknown): void => {
    if (value !== "" && value !== standard) said[name] = value;
  };
  if (wanted.formats !== "iceberg") said.formats = FORMATS[wanted.formats];
  say("storage", storageName(wanted));
  say("mode", wanted.mode, "auto");
  if (isKeyed(wanted.mode)) {
    const key = names(wanted.key);
    if (key.length > 0) said.key = key;
  }
  say("from", wanted.start.trim(), "earliest");
  const partition = partitionOf(wanted);
  if (partition !== null) said.partition = partition;
  say("event_time", wanted.layout === "default" ? wanted.eventTime.trim() : "");
  say("freshness", wanted.freshness.trim());
  say("on_error", wanted.onError, "suspend");
  say("dead_letters", wanted.onError === "log" ? wanted.deadLetters.trim() : "");
  const metadata = metadataOf(wanted.metadata);
  if (metadata !== null) said.metadata = metadata;
  if (wanted.readers.length > 0) said.readers = READERS.filter((reader) => wanted.readers.includes(reader));
  say("value_format", wanted.valueFormat, "auto");
  say("value_columns", wanted.valueFormat === "json" ? wanted.valueColumns.trim() : "");
  say("key_format", wanted.keyFormat);
  say("key_columns", wanted.keyFormat === "json" ? wanted.keyColumns.trim() : "");
  say("tombstones", wanted.tombstones, "bad");
  say("envelope", wanted.envelope, "auto");
  say("record_types", wanted.recordTypes, "single");
  return said as unknown as TableRequest;
}

/** Only tables that tell rows apart have a key; `auto` becomes one where the topic is compacted. */
export function isKeyed(mode: Mode): boolean {
  return mode !== "append";
}

function storageName(wanted: Wanted): string {
  return wanted.storage === "managed" ? "" : wanted.location.trim();
}

function partitionOf(wanted: Wanted): readonly string[] | null {
  if (wanted.layout === "default") return null;
  return wanted.layout === "none" ? ["none"] : wanted.partition.map(fieldText);
}

export function isSized(transform: Transform): boolean {
  return transform === "bucket" || transform === "truncate";
}

/** A field as commands and files write it. */
export function fieldText({ transform, column, size }: PartitionField): string {
  const name = column.trim();
  if (isSized(transform)) return `${transform}(${size.trim()}, ${name})`;
  // A column as it is; one that would be read as something else is said to be one.
  if (transform === "identity" && !/[()]/.test(name) && name !== "none" && name !== "default") return name;
  return `${transform}(${name})`;
}

function fieldProblem({ transform, column, size }: PartitionField): string | undefined {
  if (column.trim() === "") return "Say by which column.";
  if (isSized(transform) && !/^[1-9]\d*$/.test(size.trim())) return "Say how many, as in bucket(16, c).";
  return undefined;
}

function metadataOf(chosen: readonly string[]): readonly string[] | null {
  const ordered = METADATA.filter((one) => chosen.includes(one));
  if (ordered.length === METADATA.length) return ["all"];
  if (ordered.length === 0) return ["none"];
  return ordered.join() === STANDARD_METADATA.join() ? null : ordered;
}

/** `id, region` as its names. */
export function names(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
}

/** Of a bucket that is typed: the location that is made for it, reached as the one whose role it takes. */
export interface Role {
  role_arn: string | null;
  external_id: string | null;
  region: string | null;
  endpoint: string | null;
  path_style: boolean;
  encryption: string;
  kms_key: string | null;
}

export function storageOf(wanted: Wanted, role: Role): StorageRequest {
  const said: Record<string, unknown> = { name: wanted.location.trim(), uri: wanted.bucket.trim(), role_arn: role.role_arn };
  for (const name of ["external_id", "region", "endpoint", "kms_key"] as const)
    if (role[name] !== null) said[name] = role[name];
  if (role.path_style) said.path_style = true;
  if (role.encryption !== "none") said.encryption = role.encryption;
  return said as unknown as StorageRequest;
}

const TABLE_OPTIONS: readonly (readonly [keyof TableRequest, string])[] = [
  ["formats", "--formats"],
  ["storage", "--storage"],
  ["mode", "--mode"],
  ["key", "--key"],
  ["from", "--from"],
  ["partition", "--partition"],
  ["event_time", "--event-time"],
  ["freshness", "--freshness"],
  ["on_error", "--on-error"],
  ["dead_letters", "--dead-letters"],
  ["metadata", "--metadata"],
  ["readers", "--readers"],
  ["value_format", "--value-format"],
  ["value_columns", "--value-columns"],
  ["key_format", "--key-format"],
  ["key_columns", "--key-columns"],
  ["tombstones", "--tombstones"],
  ["envelope", "--envelope"],
  ["record_types", "--record-types"],
];

const STORAGE_OPTIONS: readonly (readonly [keyof StorageRequest, string])[] = [
  ["role_arn", "--role"],
  ["external_id", "--external-id"],
  ["region", "--region"],
  ["endpoint", "--endpoint"],
  ["path_style", "--path-style"],
  ["encryption", "--encryption"],
  ["kms_key", "--kms-key"],
];

/** `headgate table enable …`, as it would be typed; before it `headgate storage add …` where a bucket was typed. */
export function commandOf(request: TableRequest, storage: StorageRequest | null = null): string {
  const enable = line(["headgate", "table", "enable"], [request.topic], optionsOf(request, TABLE_OPTIONS));
  if (storage === null) return enable;
  return `${line(["headgate", "storage", "add"], [storage.name, storage.uri], optionsOf(storage, STORAGE_OPTIONS))}\n${enable}`;
}

function line(command: readonly string[], words: readonly string[], options: readonly string[]): string {
  const safe = words.map(shellWord);
  // What begins with a dash would be an option; behind `--` it is not.
  const isOption = words.some((word) => word.startsWith("-"));
  return (isOption ? [...command, ...options, "--", ...safe] : [...command, ...safe, ...options]).join(" ");
}

function optionsOf<Request>(request: Request, options: readonly (readonly [keyof Request, string])[]): string[] {
  return options.flatMap(([name, option]) => {
    const value = request[name] as string | boolean | readonly string[] | null | undefined;
    if (value === undefined || value === null || value === false) return [];
    if (value === true) return [option];
    if (typeof value === "string") return [option, shellWord(value)];
    // Each field of a partition is an option of its own, as it may have commas.
    if (name === "partition") return value.flatMap((field) => [option, shellWord(field)]);
    return [option, shellWord(value.join(","))];
  });
}

/** The same as a file for `headgate apply`. */
export function yamlOf(request: TableRequest, storage: StorageRequest | null = null): string {
  const lines: string[] = [];
  if (storage !== null) {
    const { name, ...rest } = storage;
    lines.push("storage:", ...entry(name, rest));
  }
  const { topic, ...rest } = request;
  lines.push("tables:", ...entry(topic, inOrder(rest)));
  return `${lines.join("\n")}\n`;
}

function inOrder(request: Omit<TableRequest, "topic">): Record<string, unknown> {
  const values = request as Record<string, unknown>;
  return Object.fromEntries(TABLE_OPTIONS.filter(([name]) => name in values).map(([name]) => [name, values[name]]));
}

function entry(name: string, values: Record<string, unknown>): string[] {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  if (pairs.length === 0) return [`  ${yamlText(name)}: {}`];
  return [`  ${yamlText(name)}:`, ...pairs.map(([key, value]) => `    ${key}: ${scalar(value)}`)];
}

function scalar(value: unknown): string {
  if (Array.isArray(value)) return yamlList(value.map(String));
  return typeof value === "boolean" ? String(value) : yamlText(String(value));
}

const DURATION = /^\s*\d+(?:\.\d+)?\s*(?:ms|s|m|h|d)?\s*$/;
const BUCKET = /^(?:s3|s3a):\/\/[a-z0-9][a-z0-9.-]+(?:\/[^*?#]*)?$/;
const LOCATION = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
const START = /^(?:earliest|latest|\d+:\d+(?:,\d+:\d+)*|\d{4}-\d{2}-\d{2}.*)$/;

export type Problems = Partial<Record<keyof Wanted, string>>;

/** What would be refused anyway, said beside the field. The server has the last word. */
export function problemsOf(wanted: Wanted): Problems {
  const problems: Problems = {};
  if (wanted.topic === "") problems.topic = "Choose a topic.";
  if (wanted.storage !== "managed" && wanted.location.trim() === "")
    problems.location = wanted.storage === "named" ? "Choose a location." : "Give the location a name.";
  if (wanted.storage === "bucket") {
    if (wanted.location.trim() !== "" && !LOCATION.test(wanted.location.trim()))
      problems.location = "Letters, digits, '_' and '-', at most 63, beginning with a letter or digit.";
    if (!BUCKET.test(wanted.bucket.trim())) problems.bucket = "Write s3://bucket or s3://bucket/prefix.";
    if (wanted.role === "") problems.role = "Choose whose role it is reached with.";
  }
  if (wanted.layout === "fields") {
    const problem = wanted.partition.map(fieldProblem).find((text) => text !== undefined);
    if (wanted.partition.length === 0) problems.partition = "Add a field, or choose another layout.";
    else if (problem !== undefined) problems.partition = problem;
  }
  if (wanted.freshness.trim() !== "" && !DURATION.test(wanted.freshness))
    problems.freshness = "Write a duration, as 10s, 5m or 1h.";
  if (!START.test(wanted.start.trim()))
    problems.start = "Say earliest, latest, a time as 2026-01-31T12:00:00Z, or offsets as 0:12,1:40.";
  if (wanted.valueFormat === "json" && wanted.valueColumns.trim() === "")
    problems.valueColumns = "Plain JSON needs its columns, as id bigint, price decimal(12,2).";
  if (wanted.keyFormat === "json" && wanted.keyColumns.trim() === "") problems.keyColumns = "Plain JSON needs its columns.";
  return problems;
}

/** A name for the location of a bucket: of letters, digits and dashes. */
export function locationName(uri: string): string {
  const path = uri.trim().replace(/^[a-z0-9]+:\/\//i, "");
  return path
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .toLowerCase();
}
