import { api, ApiError, CONSOLE_HEADERS, errorOf, unwrap } from "./client";

/** Small queries of the lake: all rows of a SELECT in Spark's SQL, for samples and dead letters. */

export type Row = Readonly<Record<string, unknown>>;

const DRIVER_MS = 120_000;
const POLL_MS = 500;

/** The rows of a SELECT; the query driver is started for it, if it does not run. */
export async function askLake(sql: string, signal?: AbortSignal): Promise<Row[]> {
  await driverReady(signal);
  const { id } = await unwrap(api.POST("/api/v1/queries", { body: { sql, lake: true, format: "json" }, ...(signal ? { signal } : {}) }));
  const response = await fetch(new URL(`/api/v1/queries/${encodeURIComponent(id)}/rows`, location.origin), {
    headers: CONSOLE_HEADERS,
    credentials: "same-origin",
    signal: signal ?? null,
  });
  if (!response.ok) throw errorOf(response.status, await response.json().catch(() => null));
  return rowsOf(await response.text());
}

async function driverReady(signal?: AbortSignal): Promise<void> {
  const deadline = Date.now() + DRIVER_MS;
  let state = (await unwrap(api.GET("/api/v1/query"))).state;
  if (state === "ready") return;
  await unwrap(api.POST("/api/v1/query/start"));
  while (state !== "ready") {
    if (Date.now() > deadline)
      throw new ApiError(503, "ServerUnavailable", `The query driver is still ${state}.`, "See logs/query.log in the data folder.");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    signal?.throwIfAborted();
    state = (await unwrap(api.GET("/api/v1/query"))).state;
  }
}

/** Of lines of JSON, the last of which says how it ended. */
export function rowsOf(text: string): Row[] {
  const rows: Row[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const one = parseExact(line) as { op: string; row?: Row; error?: string; message?: string; remedy?: string; state?: string };
    if (one.op === "error") throw new ApiError(400, one.error ?? "Failed", one.message ?? "The query has failed.", one.remedy ?? "");
    if (one.op === "end") {
      if (one.state !== "Completed") throw new ApiError(400, "Cancelled", "The query was cancelled.", "Ask again.");
      return rows;
    }
    if (one.row !== undefined) rows.push(one.row);
  }
  throw new ApiError(0, "Cut", "The rows have ended before the query did.", "Ask again.");
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/** JSON with whole numbers that JavaScript would round kept as text. */
export function parseExact(text: string): unknown {
  const keep: Reviver = (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && context?.source !== undefined && /^-?\d+$/.test(context.source)
      ? context.source
      : value;
  return JSON.parse(text, keep);
}
