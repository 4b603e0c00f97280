import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

export type Credential = components["schemas"]["CredentialAnswer"];
export type NewCredential = components["schemas"]["NewCredentialAnswer"];
export type CredentialRequest = components["schemas"]["CredentialRequest"];

export const CREDENTIALS = ["credentials"] as const;

export const credentialsQuery = queryOptions({
  queryKey: [...CREDENTIALS],
  queryFn: () => unwrap(api.GET("/api/v1/credentials")),
});

/** The secret is in this answer and nowhere else: it goes to who has asked, and into no cache. */
export function createCredential(body: CredentialRequest) {
  return unwrap(api.POST("/api/v1/credentials", { body }));
}

export function revokeCredential(name: string) {
  return unwrap(api.DELETE("/api/v1/credentials/{name}", { params: { path: { name } } }));
}
