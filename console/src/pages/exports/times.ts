/** Seconds since 1970 of a time as the API writes it, with its offset. */
export function secondsOf(text: string | null): number | null {
  if (text === null) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at / 1000;
}

/** The days that a period is about: `2026-11-09 – 2026-11-15`; with times where it is not whole days. */
export function periodWords(from: string, to: string): string {
  const whole = /T00:00:00(?!\.)/;
  if (!whole.test(from) || !whole.test(to)) return `${momentOf(from)} – ${momentOf(to)}`;
  const last = dayBefore(to.slice(0, 10));
  const first = from.slice(0, 10);
  return first === last ? first : `${first} – ${last}`;
}

function momentOf(text: string): string {
  return text.slice(0, 16).replace("T", " ");
}

function dayBefore(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}
