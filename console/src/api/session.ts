import { useQuery } from "@tanstack/react-query";
import { api, ApiError, unwrap } from "./client";
import type { Grant, Role, Session } from "./model";

export const SESSION = ["session"] as const;
const RANKS: Record<Role, number> = { reader: 1, writer: 2, admin: 3 };

/** Who is signed in; undefined while it is not known, null where nobody is. */
export function useSession(): Session | null | undefined {
  return useQuery({ queryKey: SESSION, queryFn: fetchSession, staleTime: 60_000 }).data;
}

export async function fetchSession(): Promise<Session | null> {
  try {
    return await unwrap(api.GET("/api/v1/session"));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return null;
    throw error;
  }
}

/** Whether who is signed in has a role for a topic and its table, or for everything where none is named. */
export type Can = (role: Role, topic?: string) => boolean;

/** What who is signed in may do. It hides what the server would refuse anyway. */
export function useCan(): Can {
  const session = useSession();
  return (role, topic) => may(session ?? null, role, topic);
}

export function may(session: Session | null, role: Role, topic?: string): boolean {
  if (session === null) return false;
  if (session.is_admin) return true;
  return session.roles.some(
    (grant) => covers(grant, role) && (topic === undefined ? grant.table === "*" : matches(grant.table, topic)),
  );
}

function covers(grant: Grant, role: Role): boolean {
  return grant.role !== "engine" && RANKS[grant.role] >= RANKS[role];
}

/** A name against a pattern with `*` and `?`. */
export function matches(pattern: string, name: string): boolean {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${escaped}$`, "s").test(name);
}
