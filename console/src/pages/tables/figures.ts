import { formatBytes } from "@/lib/format";
import { sparkName, sparkText } from "@/lib/quote";
import type { FileRow, PartitionRow, ShownTable, Snapshot } from "@/api/tables";

/** What tabs of a table show, made of what the API answers. */

export interface Bin {
  label: string;
  files: number;
  bytes: number;
}

const SMALLEST = 4096;
const FACTOR = 4;

/** Files by size, each bin four times as large as the one before; from the smallest that has any to the largest. */
export function sizeBins(files: readonly Pick<FileRow, "file_size_in_bytes">[]): Bin[] {
  const bins = new Map<number, { files: number; bytes: number }>();
  for (const { file_size_in_bytes: bytes } of files) {
    const index = Math.max(0, Math.floor(Math.log(Math.max(bytes, 1) / SMALLEST) / Math.log(FACTOR)) + 1);
    const bin = bins.get(index) ?? { files: 0, bytes: 0 };
    bins.set(index, { files: bin.files + 1, bytes: bin.bytes + bytes });
  }
  if (bins.size === 0) return [];
  const indexes = [...bins.keys()];
  const first = Math.min(...indexes);
  const length = Math.max(...indexes) - first + 1;
  return Array.from({ length }, (_, at) => ({ label: binLabel(first + at), ...(bins.get(first + at) ?? { files: 0, bytes: 0 }) }));
}

function binLabel(index: number): string {
  const upper = SMALLEST * FACTOR ** index;
  return index === 0 ? `under ${formatBytes(upper)}` : `${formatBytes(upper / FACTOR)} – ${formatBytes(upper)}`;
}

/** `day = 2025-01-01, country = NO`; `all` for a table without partitions. */
export function partitionText({ partition }: Pick<PartitionRow, "partition">): string {
  const parts = Object.entries(partition).map(([name, value]) => `${name} = ${value === null ? "NULL" : String(value)}`);
  return parts.length === 0 ? "all rows" : parts.join(", ");
}

export interface Maintained {
  id: string;
  /** Seconds. */
  at: number;
  what: string;
  before: { files: number; bytes: number; rows: number } | null;
  after: { files: number; bytes: number; rows: number } | null;
  /** What is known of it beside. */
  text: string;
  askedBy: string | null;
}

const KEPT_SNAPSHOTS: readonly string[] = ["compact", "erase", "rollback", "replay", "pin"];
const KEPT_EVENTS = /^(expire|clean|mirror|verify|maintenance)/;

/** What was done to a table beside its batches, the newest first: of its snapshots and its events. */
export function maintained(snapshots: readonly Snapshot[], events: ShownTable["events"]): Maintained[] {
  const ofSnapshots = snapshots
    .filter((one) => one.action !== null && KEPT_SNAPSHOTS.includes(one.action))
    .map((one) => ({
      id: one.snapshot_id,
      at: one.committed_at / 1000,
      what: one.action ?? "",
      before: one.before,
      after: one.after,
      text: "",
      askedBy: one.asked_by,
    }));
  const ofEvents = events
    .filter((one) => KEPT_EVENTS.test(one.kind))
    .map((one) => ({ id: `event ${one.id}`, at: one.at, what: one.kind, before: null, after: null, text: one.message.replaceAll("_", " "), askedBy: null }));
  return [...ofSnapshots, ...ofEvents].sort((a, b) => b.at - a.at);
}

/** A snapshot's rows, as what came and what went. */
export function rowsChanged(one: Pick<Snapshot, "rows_added" | "rows_removed" | "rows_deleted">): { added: number; gone: number } {
  return { added: one.rows_added, gone: one.rows_removed + one.rows_deleted };
}

/** Reasons that somebody can accept: what the engine says would let it go on. */
export type Accept = "lost" | "new-topic" | "new-timeline";

export function acceptable(reason: string): Accept | null {
  return (/--accept (lost|new-topic|new-timeline)\b/.exec(reason)?.[1] as Accept | undefined) ?? null;
}

/** `0:12 1:40` of offsets by partition. */
export function offsetsText(offsets: Readonly<Record<string, number>> | null | undefined): string {
  if (offsets === null || offsets === undefined) return "";
  return Object.entries(offsets)
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([partition, offset]) => `${partition}:${offset}`)
    .join(" ");
}

export interface Payload {
  /** In bytes of two digits, 16 to a line, each line with where it begins and what it is as text. */
  hex: string;
  /** As text, as far as it goes; the id in front of it, if it has one. */
  text: string;
  schemaId: number | null;
  bytes: number;
}

const MOST_BYTES = 4096;
const PER_LINE = 16;

/** Bytes, given as hexadecimal digits, for people to look at; `whole`: how many there are, if these are only the first. */
export function payloadOf(digits: string, whole = digits.length / 2): Payload {
  const bytes = Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const shown = bytes.slice(0, MOST_BYTES);
  const wire = bytes.length >= 5 && bytes[0] === 0;
  const schemaId = wire ? new DataView(bytes.buffer).getUint32(1) : null;
  const text = new TextDecoder("utf-8").decode(wire ? shown.slice(5) : shown);
  return { hex: hexLines(shown, whole), text, schemaId, bytes: whole };
}

function hexLines(bytes: Uint8Array, whole: number): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += PER_LINE) {
    const line = [...bytes.slice(at, at + PER_LINE)];
    const digits = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = line.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits.padEnd(PER_LINE * 3 - 1)}  ${text}`);
  }
  if (whole > bytes.length) lines.push(`… ${whole - bytes.length} more bytes`);
  return lines.join("\n");
}

/** The dead letters of a table, the newest first, with the beginnings of their payloads as hexadecimal digits. */
export function deadLettersSql(cluster: string, name: string, topic: string, replayed: boolean, most: number): string {
  const columns = [
    "`partition`",
    "`offset`",
    "`timestamp`",
    "schema_id",
    "error_class",
    "error_message",
    "failed_at",
    `hex(substring(key, 1, ${MOST_BYTES})) AS key_hex`,
    `hex(substring(value, 1, ${MOST_BYTES})) AS value_hex`,
    "length(value) AS value_bytes",
    "headers",
    "replay_id",
    "replayed_at",
  ];
  const also = replayed ? "" : " AND replayed_at IS NULL";
  return (
    `SELECT ${columns.join(", ")} FROM ${sparkName(cluster, name)} ` +
    `WHERE topic = ${sparkText(topic)}${also} ORDER BY failed_at DESC, \`partition\`, \`offset\` LIMIT ${most}`
  );
}

/** Seconds since 1970 of a time as queries give it: `2026-01-31 12:00:00.5+00:00`. */
export function timeOf(value: unknown): number | null {
  if (typeof value !== "string") return null;
  const at = Date.parse(value.replace(" ", "T"));
  return Number.isNaN(at) ? null : at / 1000;
}
