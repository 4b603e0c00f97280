import { infiniteQueryOptions, queryOptions, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "./act";
import { api, ApiError, unwrap } from "./client";
import type { Schemas } from "./model";

/** Tables: one with all that is known of it, what it is made of, and what the engine is asked to do with it. */

export type Snapshot = Schemas["SnapshotAnswer"];
export type SchemaVersion = Schemas["TableSchemaAnswer"];
export type SchemaField = Schemas["TableFieldAnswer"];
export type Ref = Schemas["RefRowAnswer"];
export type FileRow = Schemas["FileRowAnswer"];
export type PartitionRow = Schemas["PartitionRowAnswer"];
export type TableOptions = Schemas["TableOptions"];

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

const PAGE = 50;

/** What each snapshot did, the newest first, page by page. */
export function historyQuery(topic: string) {
  return infiniteQueryOptions({
    queryKey: ["table", topic, "history"],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/tables/{topic}/history", {
          params: { path: { topic }, query: { limit: PAGE, ...(pageParam === null ? {} : { before: pageParam }) } },
        }),
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    staleTime: 5000,
  });
}

/** Its schemas, the newest first, with field ids. */
export function schemasQuery(topic: string) {
  return queryOptions({
    queryKey: ["table", topic, "schemas"],
    queryFn: () => unwrap(api.GET("/api/v1/tables/{topic}/schemas", of(topic))),
    staleTime: 5000,
  });
}

type Kind = Schemas["MetadataKind"];

const metadata = (topic: string, kind: Kind) =>
  unwrap(api.GET("/api/v1/tables/{topic}/metadata/{kind}", { params: { path: { topic, kind } } })) as Promise<unknown>;

export function partitionsQuery(topic: string) {
  return queryOptions({
    queryKey: ["table", topic, "partitions"],
    queryFn: async () => (await metadata(topic, "partitions")) as readonly PartitionRow[],
    staleTime: 5000,
  });
}

export function filesQuery(topic: string) {
  return queryOptions({
    queryKey: ["table", topic, "files"],
    queryFn: async () => (await metadata(topic, "files")) as readonly FileRow[],
    staleTime: 5000,
  });
}

export function refsQuery(topic: string) {
  return queryOptions({
    queryKey: ["table", topic, "refs"],
    queryFn: async () => (await metadata(topic, "refs")) as readonly Ref[],
    staleTime: 5000,
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

/** What the engine can be asked to do with a table: each gives a request, whose result tells what came of it. */
export const requests = {
  compact: (topic: string, all: boolean) => unwrap(api.POST("/api/v1/tables/{topic}/compact", { ...of(topic), body: { all } })),
  expire: (topic: string) => unwrap(api.POST("/api/v1/tables/{topic}/expire", of(topic))),
  clean: (topic: string) => unwrap(api.POST("/api/v1/tables/{topic}/clean", of(topic))),
  mirror: (topic: string, rebuild: boolean) =>
    unwrap(api.POST("/api/v1/tables/{topic}/mirror", { ...of(topic), body: { rebuild } })),
  verify: (topic: string, deep: boolean) => unwrap(api.POST("/api/v1/tables/{topic}/verify", { ...of(topic), body: { deep } })),
  replay: (topic: string) => unwrap(api.POST("/api/v1/tables/{topic}/replay", of(topic))),
  planRollback: (topic: string, to: string) =>
    unwrap(api.POST("/api/v1/tables/{topic}/rollback", { ...of(topic), body: { to, dry_run: true } })),
  rollback: (topic: string, to: string, records: "again" | "keep-out") =>
    unwrap(api.POST("/api/v1/tables/{topic}/rollback", { ...of(topic), body: { to, records, dry_run: false } })),
  tag: (topic: string, name: string, snapshot: string, keep: string) =>
    unwrap(api.POST("/api/v1/tables/{topic}/tags", { ...of(topic), body: { name, snapshot, ...(keep === "" ? {} : { keep }) } })),
  untag: (topic: string, name: string) =>
    unwrap(api.DELETE("/api/v1/tables/{topic}/tags/{name}", { params: { path: { topic, name } } })),
} as const;

type Asked = Schemas["AskedAnswer"];

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 2000;

/** Waits for what came of a request; its refusal is thrown. `told` hears how far it has come. */
export async function resultOf<Result>(topic: string, request: string, told: (progress: string) => void = () => undefined): Promise<Result> {
  let wait = FIRST_WAIT_MS;
  for (;;) {
    const answer = await unwrap(
      api.GET("/api/v1/tables/{topic}/requests/{request_id}", { params: { path: { topic, request_id: request } } }),
    );
    const result = answer.result as Record<string, unknown>;
    if (answer.state === "done") return result as Result;
    if (answer.state === "failed") throw new ApiError(400, "Refused", String(result.error), "");
    if (typeof result.progress === "string") told(result.progress);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 1.5, LONGEST_WAIT_MS);
  }
}

interface Request<Input, Result> {
  ask: (input: Input) => Promise<Asked>;
  done?: (result: Result, input: Input) => string;
  then?: (result: Result, input: Input) => void;
  quiet?: boolean;
}

/** Something that the engine is asked to do: pending until it is done, with how far it has come. */
export function useRequest<Result, Input = void>(topic: string, { ask, ...rest }: Request<Input, Result>) {
  const [progress, setProgress] = useState("");
  const act = useAct<Input, Result>({
    run: async (input) => {
      setProgress("");
      const { request } = await ask(input);
      return resultOf<Result>(topic, request, setProgress);
    },
    refresh: [["table", topic]],
    ...rest,
  });
  return { ...act, progress };
}

/** Changes of what is wanted of a table, that the engine follows. */
export const wants = {
  suspend: (topic: string) => unwrap(api.POST("/api/v1/tables/{topic}/suspend", of(topic))),
  resume: (topic: string, accept: string | null) =>
    unwrap(api.POST("/api/v1/tables/{topic}/resume", { ...of(topic), body: accept === null ? {} : { accept } })),
  sync: (topic: string) => unwrap(api.POST("/api/v1/tables/{topic}/sync", of(topic))),
  disable: (topic: string, purge: boolean) =>
    unwrap(api.DELETE("/api/v1/tables/{topic}", { params: { path: { topic }, query: { purge } } })),
  alter: (topic: string, options: TableOptions) => unwrap(api.PATCH("/api/v1/tables/{topic}", { ...of(topic), body: options })),
} as const;

/** Puts a table's newest answer where its page looks for it. */
export function useTakeTable() {
  const client = useQueryClient();
  return (table: ShownTable) => {
    client.setQueryData(tableQuery(table.topic).queryKey, table);
  };
}
