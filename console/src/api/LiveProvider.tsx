import { createContext, use, useEffect, useMemo, type ReactNode } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { LiveStream, useLiveState, type LiveState } from "./live";

const Live = createContext<LiveStream | null>(null);

/** Holds the live stream open while what is in it is shown. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const stream = useMemo(() => new LiveStream(client), [client]);
  useEffect(() => {
    stream.start();
    return () => {
      stream.stop();
    };
  }, [stream]);
  return <Live value={stream}>{children}</Live>;
}

/** Whether what is shown is the present state, and a way to try again now. */
export function useLive(): { state: LiveState; retry: () => void } {
  const stream = use(Live);
  if (stream === null) throw new Error("useLive is for what stands inside LiveProvider");
  return { state: useLiveState(stream), retry: stream.retry };
}
