import { shellWord } from "@/lib/quote";
import type { ShownTable, TableOptions } from "@/api/tables";
import { METADATA, names } from "./wanted";

/** What can be changed of a table that is there, and the request and command that change it. */

export interface Altered {
  freshness: string;
  onError: string;
  deadLetters: string;
  formats: string;
  tombstones: string;
  partition: string;
  eventTime: string;
  metadata: readonly string[];
  readers: string;
  renames: string;
}

type Spec = ShownTable["spec"];

export function alterable(spec: Spec): Altered {
  return {
    freshness: `${spec.freshness_seconds}s`,
    onError: spec.on_error,
    deadLetters: spec.dead_letters ?? "",
    formats: spec.formats.join(","),
    tombstones: spec.tombstones,
    partition: spec.partition === null ? "default" : spec.partition.length === 0 ? "none" : spec.partition.join("\n"),
    eventTime: spec.event_time ?? "",
    metadata: METADATA.filter((one) => (spec.metadata as readonly string[]).includes(one)),
    readers: spec.readers.join(", "),
    renames: "",
  };
}

/** Only what differs from how it is; empty where nothing does. */
export function optionsOf(spec: Spec, wanted: Altered): TableOptions {
  const is = alterable(spec);
  const said: Record<string, unknown> = {};
  const differs = (name: keyof Altered): boolean => JSON.stringify(is[name]) !== JSON.stringify(wanted[name]);
  if (differs("freshness")) said.freshness = wanted.freshness.trim();
  if (differs("onError")) said.on_error = wanted.onError;
  if (differs("deadLetters") && wanted.deadLetters.trim() !== "") said.dead_letters = wanted.deadLetters.trim();
  if (differs("formats")) said.formats = names(wanted.formats);
  if (differs("tombstones")) said.tombstones = wanted.tombstones;
  if (differs("partition")) said.partition = lines(wanted.partition);
  if (differs("eventTime") && wanted.eventTime.trim() !== "") said.event_time = wanted.eventTime.trim();
  if (differs("metadata")) said.metadata = wanted.metadata.length === 0 ? ["none"] : [...wanted.metadata];
  if (differs("readers")) said.readers = names(wanted.readers);
  const renames = renamesOf(wanted.renames);
  if (Object.keys(renames).length > 0) said.renames = renames;
  return said;
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** `old=new`, one on each line. */
export function renamesOf(text: string): Record<string, string> {
  const pairs = lines(text).map((line) => {
    const at = line.indexOf("=");
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()] as const;
  });
  return Object.fromEntries(pairs.filter(([before, after]) => before !== "" && after !== ""));
}

export function renameProblem(text: string): string | undefined {
  const wrong = lines(text).find((line) => !/^[^=]+=[^=]+$/.test(line));
  return wrong === undefined ? undefined : `'${wrong}' does not say what to rename: write old=new.`;
}

const OPTIONS: readonly (readonly [keyof TableOptions, string])[] = [
  ["freshness", "--freshness"],
  ["on_error", "--on-error"],
  ["dead_letters", "--dead-letters"],
  ["formats", "--formats"],
  ["tombstones", "--tombstones"],
  ["partition", "--partition"],
  ["event_time", "--event-time"],
  ["metadata", "--metadata"],
  ["readers", "--readers"],
];

/** `headgate table alter …`, as it would be typed. */
export function alterCommand(topic: string, options: TableOptions): string {
  const words = OPTIONS.flatMap(([name, option]) => {
    const value = options[name] as string | readonly string[] | undefined | null;
    if (value === undefined || value === null) return [];
    if (typeof value === "string") return [option, shellWord(value)];
    return name === "partition" ? value.flatMap((field) => [option, shellWord(field)]) : [option, shellWord(value.join(","))];
  });
  for (const [before, after] of Object.entries(options.renames ?? {})) words.push("--rename", shellWord(`${before}=${after}`));
  const name = shellWord(topic);
  return ["headgate table alter", ...(topic.startsWith("-") ? [...words, "--", name] : [name, ...words])].join(" ");
}
