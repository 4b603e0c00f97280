import { useCallback } from "react";
import { useLocation, useNavigate } from "@tanstack/react-router";

export type SearchParams = Record<string, string | undefined>;

/** `?tab=config&q=abc`, as plain text: whoever sees the address can read it. */
export function parseSearch(text: string): SearchParams {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const entries = Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const text = new URLSearchParams(entries).toString();
  return text ? `?${text}` : "";
}

/** A value that is kept in the address, so that a link shows the same; the standard value is left out of it. */
export function useSearchParam(key: string, standard = ""): [string, (value: string) => void] {
  const search = useLocation({ select: (location) => location.search });
  const navigate = useNavigate();
  const set = useCallback(
    (value: string) => {
      void navigate({
        to: ".",
        search: (before: SearchParams) => {
          // What is undefined is left out of the address.
          return { ...before, [key]: value === standard ? undefined : value };
        },
        replace: true,
        resetScroll: false,
      });
    },
    [key, navigate, standard],
  );
  return [search[key] ?? standard, set];
}
