import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LiveStream, SAMPLES, STATUS, takeSample, takeStatus } from "@/api/live";
import type { Sample, Status } from "@/api/model";

class FakeSource extends EventTarget {
  closed = false;
  close(): void {
    this.closed = true;
  }
  say(type: string, data: unknown): void {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data) }));
  }
}

const status = (...tables: { topic: string; rows: number }[]): Status =>
  ({ tables, statements: [], catalogs: [], exports: [], processes: [], attention: [] }) as unknown as Status;
const sample = (at: number): Sample => ({
  at,
  total: { rate: 1, lag: 0, freshness: 0 },
  tables: {},
  statements: {},
});

const sources: FakeSource[] = [];
let stream: LiveStream;
let client: QueryClient;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  sources.length = 0;
  client = new QueryClient();
  stream = new LiveStream(client, () => {
    const source = new FakeSource();
    sources.push(source);
    return source as unknown as EventSource;
  });
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ name: "ada", roles: [], is_admin: true })));
});

afterEach(() => {
  stream.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("what the stream sends is in the cache", () => {
  stream.start();
  sources[0]?.dispatchEvent(new Event("open"));
  sources[0]?.say("status", status({ topic: "orders", rows: 1 }));
  expect(stream.get()).toBe("live");
  expect(client.getQueryData<Status>(STATUS)?.tables[0]?.topic).toBe("orders");
});

test("a lost stream comes back, later each time", async () => {
  stream.start();
  sources[0]?.dispatchEvent(new Event("error"));
  expect(stream.get()).toBe("offline");
  expect(sources[0]?.closed).toBe(true);
  await vi.advanceTimersByTimeAsync(999);
  expect(sources).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(sources).toHaveLength(2);
  sources[1]?.dispatchEvent(new Event("error"));
  await vi.advanceTimersByTimeAsync(1999);
  expect(sources).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(sources).toHaveLength(3);
  sources[2]?.dispatchEvent(new Event("open"));
  expect(stream.get()).toBe("live");
});

test("a revoked session does not open the stream again", async () => {
  stream.start();
  vi.stubGlobal("fetch", () => Promise.resolve(Response.json({ error: "NotAuthorized" }, { status: 401 })));
  sources[0]?.dispatchEvent(new Event("error"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sources).toHaveLength(1);
});

function see(visibility: "visible" | "hidden"): void {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(visibility);
  document.dispatchEvent(new Event("visibilitychange"));
}

test("a page that is not seen gives its connection back, and takes it again when it is", async () => {
  stream.start();
  sources[0]?.dispatchEvent(new Event("open"));
  see("hidden");
  await vi.advanceTimersByTimeAsync(9_999);
  expect(sources[0]?.closed).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(sources[0]?.closed).toBe(true);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(sources).toHaveLength(1);
  const asked = vi.spyOn(client, "invalidateQueries");
  see("visible");
  await vi.advanceTimersByTimeAsync(0);
  expect(sources).toHaveLength(2);
  expect(asked).toHaveBeenCalledTimes(1);
});

test("a page that is seen again soon has kept its stream", async () => {
  stream.start();
  sources[0]?.dispatchEvent(new Event("open"));
  see("hidden");
  await vi.advanceTimersByTimeAsync(5_000);
  see("visible");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sources).toHaveLength(1);
  expect(sources[0]?.closed).toBe(false);
});

test("only what changed is asked for again", () => {
  takeStatus(client, status({ topic: "orders", rows: 1 }, { topic: "payments", rows: 1 }));
  const asked = vi.spyOn(client, "invalidateQueries");
  takeStatus(client, status({ topic: "orders", rows: 2 }, { topic: "payments", rows: 1 }));
  expect(asked.mock.calls.map(([filters]) => filters?.queryKey)).toEqual([["table", "orders"]]);
});

test("samples are kept for an hour, each once", () => {
  for (const at of [1000, 1005, 1005, 4603]) takeSample(client, sample(at));
  expect(client.getQueryData<Sample[]>(SAMPLES)?.map((one) => one.at)).toEqual([1005, 4603]);
});
