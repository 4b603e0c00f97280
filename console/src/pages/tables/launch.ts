/** A table on its way from Pending to Running, as steps that somebody can follow. */

export type StepState = "done" | "now" | "later" | "stopped";

export interface Step {
  label: string;
  state: StepState;
  /** What it waits for, or why it stopped; empty where there is nothing to say. */
  detail: string;
}

interface Standing {
  state: string;
  reason: string | null;
  lag: number | null;
  rows: number | null;
}

const ORDER = ["Pending", "Syncing", "Running"] as const;

const ABOUT: Record<(typeof ORDER)[number], string> = {
  Pending: "The engine takes the table up: it looks for the schema and makes an empty table.",
  Syncing: "What is in the topic already is written, batch by batch.",
  Running: "The table follows the topic.",
};

/** `reached`: the furthest step that was seen so far; a table that stumbles keeps what it had reached. */
export function launchSteps(standing: Standing, reached = 0): Step[] {
  const at = indexOf(standing.state);
  const place = at === -1 ? Math.min(reached, ORDER.length - 1) : at;
  return ORDER.map((label, index) => {
    if (index < place) return { label, state: "done", detail: "" };
    if (index > place) return { label, state: "later", detail: "" };
    if (at === -1) return { label: standing.state, state: "stopped", detail: standing.reason ?? "" };
    if (label === "Running") return { label, state: "done", detail: ABOUT.Running };
    return { label, state: "now", detail: standing.reason === null || standing.reason === "" ? ABOUT[label] : standing.reason };
  });
}

function indexOf(state: string): number {
  return ORDER.findIndex((one) => one === state);
}

/** The step that a state stands for: how far it has come. */
export function stepOf(state: string): number {
  return Math.max(0, indexOf(state));
}

/** How much of the topic is in the table, from 0 to 1; undefined while that is not known. */
export function syncedShare({ rows, lag }: Pick<Standing, "rows" | "lag">): number | undefined {
  if (rows === null || lag === null || rows + lag === 0) return undefined;
  return rows / (rows + lag);
}
