import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { Schemas } from "./model";
import type { Sample } from "./model";

export type ShownStatement = Schemas["ShownStatementAnswer"];
export type ResetPlan = Schemas["ResetPlanAnswer"];

const of = (name: string) => ({ params: { path: { name } } });

export function statementQuery(name: string) {
  return queryOptions({
    queryKey: ["statement", name],
    queryFn: () => unwrap(api.GET("/api/v1/statements/{name}", of(name))),
    staleTime: Infinity,
  });
}

/** The last hour's figures of one statement. */
export function statementSamplesQuery(name: string) {
  return queryOptions({
    queryKey: ["statement-samples", name],
    queryFn: (): Promise<readonly Sample[]> =>
      unwrap(api.GET("/api/v1/samples", { params: { query: { statement: name } } })),
    refetchInterval: 10_000,
  });
}

export const stopStatement = (name: string) => unwrap(api.POST("/api/v1/statements/{name}/stop", of(name)));
export const startStatement = (name: string) => unwrap(api.POST("/api/v1/statements/{name}/start", of(name)));
export const finishStatement = (name: string) => unwrap(api.POST("/api/v1/statements/{name}/finish", of(name)));
export const deleteStatement = (name: string) => unwrap(api.DELETE("/api/v1/statements/{name}", of(name)));

export function resetStatement(name: string, body: Schemas["ResetRequest"]) {
  return unwrap(api.POST("/api/v1/statements/{name}/reset", { ...of(name), body }));
}
