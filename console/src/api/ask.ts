import { useEffect, useReducer } from "react";
import { api, ApiError, asApiError, CONSOLE_HEADERS, errorOf, unwrap } from "./client";
import type { Schemas } from "./model";

/** One SELECT, its rows as they come. */

export type AskedColumn = Schemas["ColumnAnswer"];
export type AskedRow = Readonly<Record<string, unknown>>;

export interface Asking {
  columns: readonly AskedColumn[] | null;
  rows: readonly AskedRow[];
  isDone: boolean;
  error: ApiError | null;
}

type AskEvent =
  | { kind: "begun" }
  | { kind: "planned"; columns: readonly AskedColumn[] | null }
  | { kind: "rows"; rows: readonly AskedRow[] }
  | { kind: "ended"; error: ApiError | null };

const EMPTY: Asking = { columns: null, rows: [], isDone: false, error: null };

function after(state: Asking, event: AskEvent): Asking {
  switch (event.kind) {
    case "begun":
      return EMPTY;
    case "planned":
      return { ...state, columns: event.columns };
    case "rows":
      return { ...state, rows: [...state.rows, ...event.rows] };
    case "ended":
      return { ...state, isDone: true, error: event.error };
  }
}

/** Asks when `sql` is there or has changed; whoever leaves the page stops it. */
export function useAsk(sql: string): Asking {
  const [asking, take] = useReducer(after, EMPTY);
  useEffect(() => {
    take({ kind: "begun" });
    if (sql === "") return;
    const leaving = new AbortController();
    ask(sql, leaving.signal, take).then(
      (error) => {
        if (!leaving.signal.aborted) take({ kind: "ended", error });
      },
      (error: unknown) => {
        if (!leaving.signal.aborted) take({ kind: "ended", error: asApiError(error) });
      },
    );
    return () => {
      leaving.abort();
    };
  }, [sql]);
  return asking;
}

async function ask(sql: string, signal: AbortSignal, take: (event: AskEvent) => void): Promise<ApiError | null> {
  const { id, columns } = await unwrap(api.POST("/api/v1/queries", { body: { sql, lake: false, format: "json" }, signal }));
  take({ kind: "planned", columns });
  const answer = await fetch(`/api/v1/queries/${encodeURIComponent(id)}/rows`, { headers: CONSOLE_HEADERS, signal });
  if (!answer.ok || answer.body === null) throw errorOf(answer.status, await answer.json());
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new ApiError(0, "Unreachable", "The answer was cut off before its end.", "Ask again.");
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    const said = lines.filter((line) => line !== "").map(parseExact);
    const rows = said.flatMap((line) => (line.row === undefined ? [] : [line.row]));
    if (rows.length > 0) take({ kind: "rows", rows });
    if (said.some((line) => line.op === "end")) return null;
    const failed = said.find((line) => line.op === "error");
    if (failed !== undefined) return errorOf(0, failed);
  }
}

interface Line {
  op: string;
  row?: AskedRow;
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/** A line with its whole numbers to the digit: those that JavaScript would round are text. */
export function parseExact(line: string): Line {
  const keepDigits: Reviver = (_, value, context) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;
  return JSON.parse(line, keepDigits) as Line;
}
