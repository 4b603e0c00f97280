/** How good or bad a state is; the colour says so, and the text says it too. */
export type Tone = "good" | "info" | "warn" | "bad" | "idle";

const TONES: Record<string, Tone> = {
  // Tables
  pending: "info",
  syncing: "info",
  running: "good",
  suspended: "warn",
  degraded: "warn",
  failed: "bad",
  // Statements
  stopped: "idle",
  completed: "good",
  // Processes
  ready: "good",
  up: "good",
  idle: "idle",
  starting: "info",
  stopping: "info",
  waiting: "info",
  silent: "bad",
  down: "bad",
  // Outside catalogs and storage
  connected: "good",
  published: "good",
  ok: "good",
  verified: "good",
  synced: "good",
  connecting: "info",
  removing: "info",
  "not applicable": "idle",
  failing: "bad",
  refused: "bad",
  error: "bad",
  broken: "bad",
  // Exports, requests, queries, credentials
  done: "good",
  succeeded: "good",
  active: "good",
  enabled: "good",
  written: "info",
  scheduled: "info",
  queued: "info",
  missed: "warn",
  skipped: "warn",
  late: "warn",
  paused: "idle",
  cancelled: "idle",
  revoked: "idle",
  expired: "idle",
  disabled: "idle",
};

export function toneOf(state: string): Tone {
  return TONES[state.toLowerCase()] ?? "idle";
}

/** The state of a thing: the same look everywhere, with a colour and a word. */
export function Badge({ state, tone, title }: { state: string; tone?: Tone | undefined; title?: string | undefined }) {
  return (
    <span className={`badge ${tone ?? toneOf(state)}`} title={title}>
      <span className="dot" aria-hidden="true" />
      {state}
    </span>
  );
}

/** A plain label: a format, a role, a kind. */
export function Tag({ children, title }: { children: string; title?: string }) {
  return (
    <span className="tag" title={title}>
      {children}
    </span>
  );
}
