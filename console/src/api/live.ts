import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { fetchSession, SESSION } from "./session";
import type { Sample, Status } from "./model";

/** Live state: one event stream per page, which feeds the query cache. */

export const STATUS = ["status"] as const;
export const SAMPLES = ["samples"] as const;
export const SAMPLE_SECONDS = 3600;

export type LiveState = "connecting" | "live" | "offline";

const LIVE_PATH = "/api/v1/live";
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;
/** So long a page that is not seen keeps its stream. A browser opens six connections to a host: pages left open in the
 * background would take them from the one that is looked at. */
const UNSEEN_MS = 10_000;

type Open = (path: string) => EventSource;

/** Keeps the stream open while the page is seen: after a loss it comes back by itself, later each time, at once when
 * the page is seen again. */
export class LiveStream {
  private readonly client: QueryClient;
  private readonly open: Open;
  private readonly listeners = new Set<() => void>();
  private source: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private unseen: ReturnType<typeof setTimeout> | undefined;
  private wait = FIRST_WAIT_MS;
  private running = false;
  private state: LiveState = "connecting";

  constructor(client: QueryClient, open: Open = (path) => new EventSource(path)) {
    this.client = client;
    this.open = open;
  }

  get = (): LiveState => this.state;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  start(): void {
    if (this.running) return;
    this.running = true;
    document.addEventListener("visibilitychange", this.onSeen);
    globalThis.addEventListener("online", this.retry);
    this.connect();
  }

  stop(): void {
    this.running = false;
    document.removeEventListener("visibilitychange", this.onSeen);
    globalThis.removeEventListener("online", this.retry);
    clearTimeout(this.unseen);
    this.close();
    this.show("connecting");
  }

  /** Tries again now, whatever the wait is. */
  retry = (): void => {
    if (!this.running || this.state === "live") return;
    this.wait = FIRST_WAIT_MS;
    void this.reconnect();
  };

  private readonly onSeen = (): void => {
    clearTimeout(this.unseen);
    if (document.visibilityState === "visible") this.retry();
    else this.unseen = setTimeout(this.rest, UNSEEN_MS);
  };

  /** Until the page is seen again. */
  private readonly rest = (): void => {
    this.close();
    this.show("connecting");
  };

  private connect(): void {
    this.close();
    const source = this.open(LIVE_PATH);
    this.source = source;
    source.addEventListener("open", () => {
      this.wait = FIRST_WAIT_MS;
      this.show("live");
    });
    source.addEventListener("status", (event: MessageEvent<string>) => {
      takeStatus(this.client, JSON.parse(event.data) as Status);
    });
    source.addEventListener("sample", (event: MessageEvent<string>) => {
      takeSample(this.client, JSON.parse(event.data) as Sample);
    });
    source.addEventListener("error", () => {
      this.lose();
    });
  }

  private lose(): void {
    this.close();
    if (!this.running) return;
    this.show("offline");
    if (document.visibilityState === "hidden") return;
    // Pages that many have open do not all come back in the same moment.
    const wait = this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
    this.timer = setTimeout(() => void this.reconnect(), wait);
  }

  private async reconnect(): Promise<void> {
    clearTimeout(this.timer);
    try {
      const session = await this.client.query({ queryKey: SESSION, queryFn: fetchSession, staleTime: 0 });
      // Nobody is signed in any more: the shell shows the sign-in page, and starts the stream again after it.
      if (session === null || !this.running) return;
    } catch {
      this.lose();
      return;
    }
    this.connect();
    // What came to pass meanwhile is not in the stream.
    void this.client.invalidateQueries();
  }

  private close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  private show(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    for (const listener of this.listeners) listener();
  }
}

export function useLiveState(stream: LiveStream): LiveState {
  return useSyncExternalStore(stream.subscribe, stream.get);
}

/** Puts a status into the cache, and has what pages know in detail asked for again where it changed. */
export function takeStatus(client: QueryClient, status: Status): void {
  const before = client.getQueryData<Status>(STATUS);
  client.setQueryData(STATUS, status);
  if (before === undefined) return;
  refresh(client, "table", changedNames(before.tables, status.tables, (table) => table.topic));
  refresh(client, "statement", changedNames(before.statements, status.statements, (one) => one.name));
  if (changed(before.catalogs, status.catalogs)) refresh(client, "catalogs", [undefined]);
  if (changed(before.exports, status.exports)) refresh(client, "exports", [undefined]);
}

export function takeSample(client: QueryClient, sample: Sample): void {
  client.setQueryData<readonly Sample[]>(SAMPLES, (before = []) => {
    const oldest = sample.at - SAMPLE_SECONDS;
    const kept = before.filter((one) => one.at > oldest && one.at < sample.at);
    return [...kept, sample];
  });
}

function changedNames<Item extends object>(
  before: readonly Item[],
  after: readonly Item[],
  nameOf: (item: Item) => string,
): string[] {
  const known = new Map(before.map((item) => [nameOf(item), item]));
  return after.filter((item) => changed(known.get(nameOf(item)), item)).map(nameOf);
}

function changed(before: unknown, after: unknown): boolean {
  return JSON.stringify(before) !== JSON.stringify(after);
}

function refresh(client: QueryClient, kind: string, names: readonly (string | undefined)[]): void {
  for (const name of names) {
    const queryKey = name === undefined ? [kind] : [kind, name];
    void client.invalidateQueries({ queryKey, refetchType: "active" }, { cancelRefetch: false });
  }
}
