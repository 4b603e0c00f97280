import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

export type Catalog = components["schemas"]["CatalogAnswer"];
export type ShownCatalog = components["schemas"]["ShownCatalogAnswer"];
export type Publication = components["schemas"]["PublicationAnswer"];
export type CatalogKind = Catalog["kind"];
export type CatalogRequest = components["schemas"]["CatalogRequest"];

export const CATALOGS = ["catalogs"] as const;

/** What a catalog's engine does is seen within so long, beside what the live stream tells. */
const LOOK_AGAIN_MS = 5000;

export const catalogsQuery = queryOptions({
  queryKey: [...CATALOGS],
  queryFn: () => unwrap(api.GET("/api/v1/catalogs")),
});

export function catalogQuery(name: string) {
  return queryOptions({
    queryKey: [...CATALOGS, name],
    queryFn: () => unwrap(api.GET("/api/v1/catalogs/{name}", { params: { path: { name } } })),
    refetchInterval: LOOK_AGAIN_MS,
  });
}

export const PURPOSES = ["trust", "publisher", "reader", "bucket", "kms"] as const;
export type Purpose = (typeof PURPOSES)[number];

/** What AWS must allow; without an account, AWS is asked who Headgate is. */
export function catalogPolicyQuery(name: string, purpose: Purpose, account: string) {
  return queryOptions({
    queryKey: [...CATALOGS, name, "policy", purpose, account],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/catalogs/{name}/policy", {
          params: { path: { name }, query: { purpose, ...(account === "" ? {} : { account }) } },
        }),
      ),
    retry: false,
    staleTime: 60_000,
  });
}

export function addCatalog(body: CatalogRequest) {
  return unwrap(api.POST("/api/v1/catalogs", { body }));
}

export function retryCatalog(name: string) {
  return unwrap(api.POST("/api/v1/catalogs/{name}/retry", { params: { path: { name } } }));
}

export function removeCatalog(name: string, force: boolean) {
  return unwrap(api.DELETE("/api/v1/catalogs/{name}", { params: { path: { name }, query: { force } } }));
}
