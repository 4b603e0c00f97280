import { useAct } from "./act";
import { send, type Method } from "./client";
import { STATUS } from "./live";
import type { Attention } from "./model";

export type Mending = NonNullable<Attention["action"]>;

/** Does what the server named as the way to mend something. */
export function useMend(then?: () => void) {
  return useAct<Mending>({
    run: (action) => send(action.method satisfies Method, action.path, action.body ?? undefined),
    done: (_, action) => `${action.label}: asked for`,
    refresh: [STATUS],
    ...(then === undefined ? {} : { then }),
  });
}
