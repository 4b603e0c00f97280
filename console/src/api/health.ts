import { queryOptions } from "@tanstack/react-query";
import { api, CONSOLE_HEADERS, unwrap } from "./client";

/** What each part answered: `ok`, or the kind of its failure. Parts of somebody else's are not in it. */
export type Health = Readonly<Record<string, string>>;

/** Asked of `/healthz`, which is everybody's: whether the registry and the catalog that are built in answer. */
export const healthQuery = queryOptions({
  queryKey: ["health"],
  queryFn: async (): Promise<Health> => {
    const response = await fetch("/healthz", { headers: CONSOLE_HEADERS });
    const said = (await response.json()) as { checks?: Health };
    return said.checks ?? {};
  },
  refetchInterval: 10_000,
});

/** Starts the query driver, if nobody has yet. */
export const startQueryDriver = () => unwrap(api.POST("/api/v1/query/start"));
