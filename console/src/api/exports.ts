import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

export type ListedExport = components["schemas"]["ListedExportAnswer"];
export type ShownExport = components["schemas"]["ShownExportAnswer"];
export type Run = components["schemas"]["RunAnswer"];
/** What was said of an export; what was not is as it is by default, and not in it. */
export type Definition = Partial<ShownExport["spec"]> & Pick<ShownExport["spec"], "sql">;

export const EXPORTS = ["exports"] as const;
const PROGRESS_MS = 2000;

export const exportsQuery = queryOptions({
  queryKey: [...EXPORTS],
  queryFn: () => unwrap(api.GET("/api/v1/exports")),
  refetchInterval: ({ state }) => (state.data?.some((one) => isOpen(one.last_run)) ? PROGRESS_MS : false),
});

export function exportQuery(name: string) {
  return queryOptions({
    queryKey: [...EXPORTS, name],
    queryFn: () => unwrap(api.GET("/api/v1/exports/{name}", { params: { path: { name } } })),
  });
}

export function runsQuery(name: string, limit: number) {
  return queryOptions({
    queryKey: [...EXPORTS, name, "runs", limit],
    queryFn: () => unwrap(api.GET("/api/v1/exports/{name}/runs", { params: { path: { name }, query: { limit } } })),
    refetchInterval: ({ state }) => (state.data?.some(isOpen) ? PROGRESS_MS : false),
  });
}

/** Whether a run goes on, or will. */
export function isOpen(run: Run | null): boolean {
  return run !== null && ["Waiting", "Running", "Written"].includes(run.state);
}

/** The address of a run's file: a browser downloads it, with the rights of who is signed in. */
export function fileAddress(run: Run): string {
  return `/api/v1/exports/${encodeURIComponent(run.export)}/runs/${encodeURIComponent(run.id)}/file`;
}

export function runExport(name: string, period?: { from: string; to: string }) {
  return unwrap(
    api.POST("/api/v1/exports/{name}/run", { params: { path: { name } }, body: { whole: false, ...period } }),
  );
}

export function pauseExport(name: string) {
  return unwrap(api.POST("/api/v1/exports/{name}/pause", { params: { path: { name } } }));
}

export function resumeExport(name: string) {
  return unwrap(api.POST("/api/v1/exports/{name}/resume", { params: { path: { name } } }));
}

export function testMail(name: string, to: readonly string[]) {
  return unwrap(
    api.POST("/api/v1/exports/{name}/test", { params: { path: { name } }, body: to.length === 0 ? {} : { to: [...to] } }),
  );
}

export async function removeExport(name: string): Promise<void> {
  await unwrap(api.DELETE("/api/v1/exports/{name}", { params: { path: { name } } }));
}
