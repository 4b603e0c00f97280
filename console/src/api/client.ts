import createClient from "openapi-fetch";
import type { paths } from "./schema";

/** What went wrong, in the server's words, and what to do next. */
export class ApiError extends Error {
  readonly status: number;
  readonly kind: string;
  readonly remedy: string;

  constructor(status: number, kind: string, message: string, remedy: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.kind = kind;
    this.remedy = remedy;
  }
}

/** Told to the server with each request: it then answers a 401 without a password box of the browser's. */
export const CONSOLE_HEADERS = { "X-Headgate-Console": "1" } as const;

/** The client of `/api/v1`, typed from the server's own description of its routes. */
export const api = createClient<paths>({
  baseUrl: location.origin,
  headers: CONSOLE_HEADERS,
  credentials: "same-origin",
  // Looked up at each call, so that a test can put another in its place.
  fetch: (request) => globalThis.fetch(request),
});

interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** The data of an answer; an ApiError where there is none. */
export async function unwrap<Data>(asked: Promise<Answer<Data>>): Promise<NonNullable<Data>> {
  const { data, error, response } = await reached(asked);
  if (!response.ok) throw errorOf(response.status, error);
  return data as NonNullable<Data>;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/**
 * A request whose route the server named, as in the button of a thing that needs attention.
 * Everything that a page asks for of its own goes through `api`.
 */
export async function send(method: Method, path: string, body?: unknown): Promise<unknown> {
  const response = await reached(
    fetch(new URL(path, location.origin), {
      method,
      credentials: "same-origin",
      headers: body === undefined ? CONSOLE_HEADERS : { ...CONSOLE_HEADERS, "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    }),
  );
  const content: unknown = await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response.status, content);
  return content;
}

async function reached<Value>(asked: Promise<Value>): Promise<Value> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(
      0,
      "Unreachable",
      "Headgate does not answer.",
      "See that it is running: `headgate status`. This page goes on by itself when it answers again.",
    );
  }
}

export function errorOf(status: number, content: unknown): ApiError {
  const said = (typeof content === "object" && content !== null ? content : {}) as Record<string, unknown>;
  const text = (key: string): string => (typeof said[key] === "string" ? said[key] : "");
  return new ApiError(
    status,
    text("error") || "Failed",
    text("message") || `The server answered with status ${status}.`,
    text("remedy"),
  );
}

/** Any failure as an ApiError, for showing. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "Failed", error instanceof Error ? error.message : String(error), "");
}
