import type { Session } from "@/api/model";

/** Whether there may be a topic that who is signed in can make a table: the server decides for each. */
export function mayEnable(session: Session | null): boolean {
  if (session === null) return false;
  return session.is_admin || session.roles.some((grant) => grant.role === "writer" || grant.role === "admin");
}
