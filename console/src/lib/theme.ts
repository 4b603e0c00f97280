import { Stored } from "./stored";

export type Theme = "system" | "light" | "dark";

/** The theme that was chosen here; the system's, where none was. */
export const theme = new Stored<Theme>("theme", (text) => (text === "light" || text === "dark" ? text : "system"));

export function chooseTheme(chosen: Theme): void {
  theme.set(chosen === "system" ? null : chosen);
}

/** Puts the chosen theme on the page, now and whenever it changes. */
export function followTheme(): void {
  const apply = (): void => {
    const chosen = theme.get();
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
  };
  apply();
  theme.subscribe(apply);
}
