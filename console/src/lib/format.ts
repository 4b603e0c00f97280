/** Numbers, sizes and times as pages show them. */

const counts = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const shortCounts = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** What stands where there is nothing to show. */
export const NONE = "–";

export function formatCount(value: number): string {
  return counts.format(value);
}

/** `1.2M`, for places where the whole number would not fit. */
export function formatShort(value: number): string {
  return shortCounts.format(value);
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? "B"}`;
}

/** `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d`. */
export function formatDuration(seconds: number): string {
  if (seconds < 0.9995) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return two(Math.floor(seconds / 60), "min", Math.floor(seconds % 60), "s");
  if (seconds < 86_400) return two(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  return two(Math.floor(seconds / 86_400), "d", Math.floor((seconds % 86_400) / 3600), "h");
}

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** `just now`, `20 s ago`, `3 min ago`, `in 2 h`; a date when it is further away than a month. */
export function formatRelative(at: number, now: number): string {
  const age = now - at;
  const distance = Math.abs(age);
  if (distance < 5) return "just now";
  if (distance > 30 * 86_400) return formatDate(at);
  const words =
    distance < 60
      ? `${Math.floor(distance)} s`
      : distance < 3600
        ? `${Math.floor(distance / 60)} min`
        : distance < 86_400
          ? `${Math.floor(distance / 3600)} h`
          : `${Math.floor(distance / 86_400)} d`;
  return age > 0 ? `${words} ago` : `in ${words}`;
}

const dates = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

export function formatDate(at: number): string {
  return dates.format(at * 1000);
}

const clocks = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** Date and time in the browser's zone, `2026-11-19 18:04:05.120`. */
export function formatLocal(at: number): string {
  const millis = Math.round(at * 1000) % 1000;
  const fraction = millis === 0 ? "" : `.${String(millis).padStart(3, "0")}`;
  return `${dates.format(at * 1000)} ${clocks.format(at * 1000)}${fraction}`;
}

/** `2026-11-19 18:04:05 UTC`. */
export function formatUtc(at: number): string {
  const text = new Date(at * 1000).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23).replace(/\.000$/, "")} UTC`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
