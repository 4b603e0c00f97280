import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { components } from "./schema";

export type Setting = components["schemas"]["SettingAnswer"];

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: () => unwrap(api.GET("/api/v1/settings")),
});
