import type { Catalog } from "@/api/catalogs";

/** How many are in which state, in words: `12 synced, 1 failed`; those that need a look come first. */
export function countsOf(states: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  const order = ["Failed", "Pending", "Synced", "Not applicable"];
  return [...counts]
    .sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
    .map(([state, count]) => `${count} ${state.toLowerCase()}`)
    .join(", ");
}

type Standing = Pick<Catalog, "kind" | "state" | "reason" | "desired">;

/** Why a catalog is as it is; what it waits for where nothing was said. */
export function reasonOf({ kind, state, reason, desired }: Standing): string {
  if (desired === "removed") return "Its tables are taken out of it; then it is forgotten.";
  if (reason !== "") return reason;
  if (state === "Connected") return "It takes tables.";
  if (state === "Failed") return "It does not answer, or refuses; it is tried again.";
  return kind === "unity" ? "It waits for its first Delta table." : "It waits for the engine.";
}
