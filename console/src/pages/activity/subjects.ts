import { paths } from "@/lib/paths";

/** What an event or an entry of the audit trail is about: what it is called, and its page, where it has one. */
export interface Subject {
  noun: string;
  name: string;
  href: string | null;
}

const PAGES: Readonly<Record<string, (name: string) => string>> = {
  table: (name) => paths.table(name),
  topic: (name) => paths.topic(name),
  statement: (name) => paths.statement(name),
  catalog: (name) => paths.integration("catalogs", name),
  storage: (name) => paths.integration("storage", name),
  credential: (name) => paths.integration("credentials", name),
  export: (name) => paths.export(name),
};

const PROCESSES = ["broker", "server", "engine", "query", "export", "connect", "datagen"];

/**
 * A subject as the API writes it: `statement x`; a process by its name alone; a table as its topic, which has
 * no space in it.
 */
export function subjectOf(text: string): Subject {
  const at = text.indexOf(" ");
  if (at < 0)
    return PROCESSES.includes(text)
      ? { noun: "process", name: text, href: null }
      : { noun: "table", name: text, href: paths.table(text) };
  const [noun, name] = [text.slice(0, at), text.slice(at + 1)];
  return { noun, name, href: PAGES[noun]?.(name) ?? null };
}

/**
 * What an entry of the audit trail names: `topic shop.orders`. What was asked of the catalog names tables with
 * their namespace, `table local.shop.orders`.
 */
export function thingOf(text: string, action: string, cluster: string): Subject {
  if (!text.includes(" ")) return { noun: "", name: text, href: null };
  const subject = subjectOf(text);
  if (subject.noun !== "table" || !action.includes(" /iceberg/")) return subject;
  const prefix = `${cluster}.`;
  return { ...subject, href: subject.name.startsWith(prefix) ? paths.table(subject.name.slice(prefix.length)) : null };
}
