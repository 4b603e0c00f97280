import { useEffect, useReducer, useState } from "react";
import { ApiError, errorOf } from "./client";
import type { Message } from "./topics";

/** A live tail of a topic, with a brake: at most so many messages a second are sent, and as few are kept. */

export const KEPT_MESSAGES = 500;

export interface TailState {
  /** The newest first. */
  messages: readonly Message[];
  leftOut: number;
  lookedAt: number;
  error: ApiError | null;
  isOpen: boolean;
}

type TailEvent =
  | { kind: "opened" }
  | { kind: "messages"; messages: readonly Message[] }
  | { kind: "counted"; leftOut: number; lookedAt: number }
  | { kind: "failed"; error: ApiError };

const EMPTY: TailState = { messages: [], leftOut: 0, lookedAt: 0, error: null, isOpen: false };

export function tailAfter(state: TailState, event: TailEvent): TailState {
  switch (event.kind) {
    case "opened":
      return { ...state, isOpen: true, error: null };
    case "messages":
      return { ...state, messages: [...event.messages.toReversed(), ...state.messages].slice(0, KEPT_MESSAGES) };
    case "counted":
      return { ...state, leftOut: event.leftOut, lookedAt: event.lookedAt };
    case "failed":
      return { ...state, isOpen: false, error: event.error };
  }
}

export interface TailView {
  partition: number | undefined;
  text: string;
  /** The brake: so many messages in a second. */
  most: number;
}

/** Messages as they come, while `view` is there; begins again when it changes or `restart` is called. */
export function useTail(name: string, view: TailView): { tail: TailState; restart: () => void } {
  const [tail, take] = useReducer(tailAfter, EMPTY);
  const [round, setRound] = useState(0);
  const { partition, text, most } = view;
  useEffect(() => {
    const query = new URLSearchParams({ most: String(most) });
    if (text !== "") query.set("text", text);
    if (partition !== undefined) query.set("partition", String(partition));
    const source = new EventSource(`/api/v1/topics/${encodeURIComponent(name)}/messages/live?${query.toString()}`);
    // Drawn a few times a second, however many come.
    let waiting: Message[] = [];
    const timer = setInterval(() => {
      if (waiting.length === 0) return;
      take({ kind: "messages", messages: waiting });
      waiting = [];
    }, 250);
    const lose = (error: ApiError): void => {
      source.close();
      take({ kind: "failed", error });
    };
    source.addEventListener("open", () => {
      take({ kind: "opened" });
    });
    source.addEventListener("message", (event: MessageEvent<string>) => {
      waiting.push(JSON.parse(event.data) as Message);
    });
    source.addEventListener("tail", (event: MessageEvent<string>) => {
      const said = JSON.parse(event.data) as { left_out: number; looked_at: number };
      take({ kind: "counted", leftOut: said.left_out, lookedAt: said.looked_at });
    });
    source.addEventListener("error", (event: Event) => {
      // The server's own word why it ends, or a connection that was lost.
      const said = event instanceof MessageEvent ? (JSON.parse(String(event.data)) as unknown) : null;
      lose(
        said === null
          ? new ApiError(0, "Unreachable", "The live view was cut off.", "Start it again, or look at the messages by page.")
          : errorOf(0, said),
      );
    });
    return () => {
      clearInterval(timer);
      source.close();
    };
  }, [name, partition, text, most, round]);
  return {
    tail,
    restart: () => {
      setRound((before) => before + 1);
    },
  };
}
