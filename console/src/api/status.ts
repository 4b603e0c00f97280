import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import { SAMPLES, STATUS } from "./live";
import type { Attention, Sample, Statement, Table } from "./model";

// The stream keeps it fresh; it is asked for once, so that a page has something to show at once.
const statusQuery = queryOptions({
  queryKey: STATUS,
  queryFn: () => unwrap(api.GET("/api/v1/status")),
  staleTime: Infinity,
});

const samplesQuery = queryOptions({
  queryKey: SAMPLES,
  queryFn: (): Promise<readonly Sample[]> =>
    unwrap(api.GET("/api/v1/samples", { params: { query: { minutes: 60 } } })),
  staleTime: Infinity,
});

/** All there is, in short, as it stands now. */
export function useStatus() {
  return useQuery(statusQuery);
}

/** The last hour's figures, the newest last. */
export function useSamples() {
  return useQuery(samplesQuery);
}

/** One table's short state; undefined where there is no such table (or it is not known yet). */
export function useTableState(topic: string): Table | undefined {
  return useQuery({ ...statusQuery, select: (status) => status.tables.find((one) => one.topic === topic) }).data;
}

export function useStatementState(name: string): Statement | undefined {
  return useQuery({ ...statusQuery, select: (status) => status.statements.find((one) => one.name === name) }).data;
}

export function useAttention(): readonly Attention[] {
  return useQuery({ ...statusQuery, select: (status) => status.attention }).data ?? [];
}
