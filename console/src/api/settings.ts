import { queryOptions } from "@tanstack/react-query";
import { send } from "./client";

export interface Setting {
  key: string;
  value: unknown;
  source: "default" | "file" | "environment";
  /** Its value is not told, only whether there is one. */
  secret: boolean;
}

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: async () => (await send("GET", "/api/v1/settings")) as readonly Setting[],
});
