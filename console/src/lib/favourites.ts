import { Stored } from "./stored";

/** Topics that are shown first in this browser. */
export const favourites = new Stored<ReadonlySet<string>>("favourite-topics", parseNames);

function parseNames(text: string | null): ReadonlySet<string> {
  try {
    const said: unknown = JSON.parse(text ?? "[]");
    return new Set(Array.isArray(said) ? said.filter((name) => typeof name === "string") : []);
  } catch {
    return new Set();
  }
}

export function toggleFavourite(name: string): void {
  const names = new Set(favourites.get());
  if (!names.delete(name)) names.add(name);
  favourites.set(JSON.stringify([...names].sort()));
}
