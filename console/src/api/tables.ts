import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useToast } from "@/components/Toast";
import { api, asApiError, unwrap } from "./client";
import type { Schemas } from "./model";

/** Tables: one with all that is known of it, what it is made of, and what the engine is asked to do with it. */

export type ShownTable = Schemas["ShownTableAnswer"];
export type History = Schemas["HistoryAnswer"];
export type Snapshot = Schemas["SnapshotAnswer"];
export type Ref = Schemas["RefRowAnswer"];
export type RequestAnswer = Schemas["RequestAnswer"];

const of = (topic: string) => ({ params: { path: { topic } } });

export function tableQuery(topic: string) {
  return queryOptions({
    queryKey: ["table", topic, "shown"],
    queryFn: () => unwrap(api.GET("/api/v1/tables/{topic}", of(topic))),
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
