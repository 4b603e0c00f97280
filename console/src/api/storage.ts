import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

export type Storage = components["schemas"]["StorageAnswer"];
export type ShownStorage = components["schemas"]["ShownStorageAnswer"];
export type StorageRequest = components["schemas"]["StorageRequest"];
export type StoragePolicies = components["schemas"]["StoragePoliciesAnswer"];

export const STORAGE = ["storage"] as const;

export const storageListQuery = queryOptions({
  queryKey: [...STORAGE],
  queryFn: () => unwrap(api.GET("/api/v1/storage")),
});

export function storageQuery(name: string) {
  return queryOptions({
    queryKey: [...STORAGE, name],
    queryFn: () => unwrap(api.GET("/api/v1/storage/{name}", { params: { path: { name } } })),
  });
}

/** What IAM must allow; `principal` is what Headgate runs as. */
export function storagePolicyQuery(name: string, principal: string) {
  return queryOptions({
    queryKey: [...STORAGE, name, "policy", principal],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/storage/{name}/policy", {
          params: { path: { name }, query: principal === "" ? {} : { principal } },
        }),
      ),
    retry: false,
    staleTime: 60_000,
  });
}

/** The same for a location that is not there yet: nothing is asked of the store, and nothing is kept. */
export function storagePolicyBeforeQuery(body: StorageRequest, principal: string) {
  return queryOptions({
    queryKey: [...STORAGE, "+new", "policy", body, principal],
    queryFn: () =>
      unwrap(api.POST("/api/v1/storage/policy", { body, params: { query: principal === "" ? {} : { principal } } })),
    retry: false,
    staleTime: 60_000,
  });
}

export function addStorage(body: StorageRequest) {
  return unwrap(api.POST("/api/v1/storage", { body }));
}

export function testStorage(name: string) {
  return unwrap(api.POST("/api/v1/storage/{name}/test", { params: { path: { name } } }));
}

export function removeStorage(name: string) {
  return unwrap(api.DELETE("/api/v1/storage/{name}", { params: { path: { name } } }));
}
