import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

export type Event = components["schemas"]["EventAnswer"];
export type AuditEntry = components["schemas"]["AuditEntryAnswer"];

/** So many are asked for at once; fewer in an answer were the last. */
export const PAGE = 100;
const LOOK_AGAIN_MS = 5000;

type Pages = readonly (readonly { id: number }[])[];

/** Older pages are not asked for again and again: what was is as it was. */
function again(pages: Pages | undefined): number | false {
  return pages === undefined || pages.length <= 1 ? LOOK_AGAIN_MS : false;
}

/** The id that the next page is older than; none after the last. */
export function nextPage(last: readonly { id: number }[]): number | undefined {
  return last.length < PAGE ? undefined : last.at(-1)?.id;
}

export interface EventFilter {
  subject: string;
  text: string;
}

export function eventsQuery({ subject, text }: EventFilter) {
  return infiniteQueryOptions({
    queryKey: ["events", subject, text],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/events", {
          params: {
            query: {
              limit: PAGE,
              ...(subject === "" ? {} : { subject }),
              ...(text === "" ? {} : { text }),
              ...(pageParam === undefined ? {} : { before: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: nextPage,
    refetchInterval: ({ state }) => again(state.data?.pages),
  });
}

export interface AuditFilter {
  who: string;
  about: string;
  /** Seconds since 1970; null is since the beginning. */
  since: number | null;
  refused: boolean;
}

export function auditQuery({ who, about, since, refused }: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: ["audit", who, about, since, refused],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/audit", {
          params: {
            query: {
              limit: PAGE,
              refused,
              ...(who === "" ? {} : { who }),
              ...(about === "" ? {} : { about }),
              ...(since === null ? {} : { since }),
              ...(pageParam === undefined ? {} : { before: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: nextPage,
    refetchInterval: ({ state }) => again(state.data?.pages),
  });
}
