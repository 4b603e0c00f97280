import { sparkName, sparkText } from "@/lib/quote";
import type { Partition, Payload, ShownTable, SizeBucket, Snapshot } from "@/api/tables";

/** What tabs of a table show, made of what the API answers. */

export interface Bin {
  label: string;
  files: number;
  bytes: number;
}

/** Files by size, from the smallest bucket that has any to the largest. */
export function sizeBins(sizes: readonly SizeBucket[]): Bin[] {
  const used = sizes.flatMap((one, index) => (one.files > 0 ? [index] : []));
  const first = used[0];
  const last = used.at(-1);
  if (first === undefined || last === undefined) return [];
  return sizes.slice(first, last + 1).map((one) => ({ label: bucketLabel(one), files: one.files, bytes: one.bytes }));
}

function bucketLabel({ from, to }: Pick<SizeBucket, "from" | "to">): string {
  if (to === null) return `${binary(from)} and more`;
  return from === 0 ? `under ${binary(to)}` : `${binary(from)} – ${binary(to)}`;
}

/** Buckets begin at powers of two: `64 KiB`. */
function binary(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"] as const;
  const unit = bytes === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${bytes / 1024 ** unit} ${units[unit] ?? "B"}`;
}

/** `day = 2025-01-01, country = NO`; `all` for a table without partitions. */
export function partitionText({ partition }: Pick<Partition, "partition">): string {
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

const PER_LINE = 16;

/** Hexadecimal digits as lines of 16 bytes, each with where it begins and what it is as text. */
export function hexDump({ hex, bytes: whole }: Pick<Payload, "hex" | "bytes">): string {
  return hexLines(Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16)), whole);
}

/** What could be read of a payload, as text. */
export function contentText({ content }: Pick<Payload, "content">): string {
  return typeof content === "string" ? content : JSON.stringify(content, null, 2);
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

/** Which dead letters of a table a replay has taken up, or a rollback keeps out: their topic does not say. */
export function takenUpSql(cluster: string, name: string, topic: string, most: number): string {
  return (
    `SELECT \`partition\`, \`offset\`, replay_id, replayed_at FROM ${sparkName(cluster, name)} ` +
    `WHERE topic = ${sparkText(topic)} AND replayed_at IS NOT NULL ORDER BY failed_at DESC LIMIT ${most}`
  );
}

/** Seconds since 1970 of a time as queries give it: `2026-01-31 12:00:00.5+00:00`. */
export function timeOf(value: unknown): number | null {
  if (typeof value !== "string") return null;
  const at = Date.parse(value.replace(" ", "T"));
  return Number.isNaN(at) ? null : at / 1000;
}
