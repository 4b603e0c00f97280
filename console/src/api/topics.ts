import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

export interface TopicSummary {
  name: string;
  id: string;
  partitions: number[];
  internal: boolean;
  records: number | null;
  rate: number | null;
  schema: { id: number; type: string } | null;
  table: string | null;
}

export function topicsQuery(internal: boolean) {
  return queryOptions({
    queryKey: ["topics", { internal }],
    queryFn: async () =>
      (await unwrap(api.GET("/api/v1/topics", { params: { query: { internal } } }))) as unknown as readonly TopicSummary[],
    staleTime: 10_000,
  });
}
