import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { Schemas } from "./model";

/** Tables: one with all that is known of it, what it is made of, and what the engine is asked to do with it. */

export type History = Schemas["HistoryAnswer"];
export type Snapshot = Schemas["SnapshotAnswer"];
export type Ref = Schemas["RefRowAnswer"];
export type RequestAnswer = Schemas["RequestAnswer"];

const of = (topic: string) => ({ params: { path: { topic } } });

const fetchTable = (topic: string) => unwrap(api.GET("/api/v1/tables/{topic}", of(topic)));

/** One table, with all that is known of it. */
export type ShownTable = Awaited<ReturnType<typeof fetchTable>>;

export function tableQuery(topic: string) {
  return queryOptions({
    queryKey: ["table", topic, "shown"],
    queryFn: () => fetchTable(topic),
    staleTime: 2000,
  });
}

export function storagesQuery(enabled: boolean) {
  return queryOptions({
    queryKey: ["storage", "list"],
    queryFn: () => unwrap(api.GET("/api/v1/storage")),
    staleTime: 10_000,
    enabled,
  });
}
