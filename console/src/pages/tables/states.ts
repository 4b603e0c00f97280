/** States of tables, by how much they ask for somebody. */

const ORDER: readonly string[] = ["Failed", "Suspended", "Degraded", "Pending", "Syncing", "Running"];
const STOPPED: readonly string[] = ["Failed", "Suspended", "Degraded"];

interface Standing {
  state: string;
}

/** Those that need somebody come first. */
export function rankOf(state: string): number {
  const rank = ORDER.indexOf(state);
  return rank === -1 ? ORDER.length : rank;
}

export function needsAttention(table: Standing): boolean {
  return STOPPED.includes(table.state);
}

/** How many tables are in each state that there is, in their order. */
export function stateCounts(tables: readonly Standing[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const { state } of tables) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => rankOf(a) - rankOf(b));
}
