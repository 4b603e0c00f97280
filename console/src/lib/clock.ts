import { useSyncExternalStore } from "react";

/** The time that relative times on the page are told by; one timer for all of them. */

const STEP_MS = 5000;
const listeners = new Set<() => void>();
let now = Date.now() / 1000;
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  now = Date.now() / 1000;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now() / 1000;
    timer = setInterval(tick, STEP_MS);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Seconds since 1970; what uses it is drawn again every few seconds. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
