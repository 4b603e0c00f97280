/** A setting's value as one would write it; nothing where there is none. */
export function valueWords(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ");
  if (typeof value === "object" && Object.keys(value).length === 0) return "";
  return JSON.stringify(value);
}

/** The environment variable that sets it: `HEADGATE_CATALOG__WAREHOUSE`. */
export function environmentName(key: string): string {
  return `HEADGATE_${key.toUpperCase().replaceAll(".", "__")}`;
}
