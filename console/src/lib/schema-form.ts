/** The fields of a form that are in a schema, and the JSON of what was typed into them. */

export type FieldKind = "text" | "number" | "boolean" | "choice" | "json";

export interface FormField {
  name: string;
  kind: FieldKind;
  /** It may be left out: it is null then, or its default. */
  optional: boolean;
  /** What it is, in a few words: `timestamp in milliseconds`. */
  hint: string;
  choices: readonly string[];
  /** What stands in the field at first. */
  initial: string;
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
type JsonObject = Readonly<Record<string, Json>>;

/** The fields of a record; null where it is none, and its value is typed as JSON. */
export function formOf(type: string, text: string): readonly FormField[] | null {
  let schema: Json;
  try {
    schema = JSON.parse(text) as Json;
  } catch {
    return null;
  }
  if (!isObject(schema)) return null;
  if (type === "AVRO") return avroForm(schema);
  if (type === "JSON") return jsonForm(schema);
  return null;
}

function avroForm(schema: JsonObject): readonly FormField[] | null {
  const { fields } = schema;
  if (schema.type !== "record" || !Array.isArray(fields)) return null;
  return (fields as readonly Json[]).filter(isObject).map(avroField);
}

const AVRO_HINTS: Readonly<Record<string, string>> = {
  date: "a date: 2026-11-19",
  "time-millis": "a time: 18:04:05",
  "time-micros": "a time: 18:04:05",
  "timestamp-millis": "a time: 2026-11-19T18:04:05Z",
  "timestamp-micros": "a time: 2026-11-19T18:04:05Z",
  "local-timestamp-millis": "a time without a zone: 2026-11-19T18:04:05",
  "local-timestamp-micros": "a time without a zone: 2026-11-19T18:04:05",
  uuid: "a UUID",
};

function avroField(field: JsonObject): FormField {
  const union = Array.isArray(field.type) ? (field.type as readonly Json[]) : undefined;
  const isNullable = union?.includes("null") === true;
  const members = union?.filter((one) => one !== "null");
  const shape = members === undefined ? field.type : members.length === 1 ? members[0] : undefined;
  const hasDefault = field.default !== undefined;
  const common = {
    name: asTyped(field.name),
    optional: isNullable || hasDefault,
    initial: hasDefault && field.default !== null ? asTyped(field.default) : "",
    choices: [],
  };
  if (shape === undefined) return { ...common, kind: "json", hint: "JSON: one of several types" };
  if (typeof shape === "string") return { ...common, ...avroPrimitive(shape) };
  if (!isObject(shape)) return { ...common, kind: "json", hint: "JSON" };
  const logical = typeof shape.logicalType === "string" ? shape.logicalType : "";
  if (logical === "decimal") return { ...common, kind: "number", hint: `a decimal number with ${asTyped(shape.scale ?? 0)} places` };
  if (logical in AVRO_HINTS) return { ...common, kind: "text", hint: AVRO_HINTS[logical] ?? "" };
  if (shape.type === "enum" && Array.isArray(shape.symbols))
    return { ...common, kind: "choice", hint: "", choices: (shape.symbols as readonly Json[]).map(String) };
  if (typeof shape.type === "string" && shape.type in AVRO_PRIMITIVES) return { ...common, ...avroPrimitive(shape.type) };
  return { ...common, kind: "json", hint: `JSON: ${shape.type === "array" ? "a list" : shape.type === "map" ? "a map" : "an object"}` };
}

const AVRO_PRIMITIVES: Readonly<Record<string, Pick<FormField, "kind" | "hint">>> = {
  string: { kind: "text", hint: "" },
  bytes: { kind: "text", hint: "bytes: base64:…" },
  boolean: { kind: "boolean", hint: "" },
  int: { kind: "number", hint: "a whole number" },
  long: { kind: "number", hint: "a whole number" },
  float: { kind: "number", hint: "" },
  double: { kind: "number", hint: "" },
};

function avroPrimitive(name: string): Pick<FormField, "kind" | "hint"> {
  return AVRO_PRIMITIVES[name] ?? { kind: "json", hint: `JSON: ${name}` };
}

function jsonForm(schema: JsonObject): readonly FormField[] | null {
  if (!isObject(schema.properties)) return null;
  const required = new Set(Array.isArray(schema.required) ? (schema.required as readonly Json[]).map(String) : []);
  return Object.entries(schema.properties).map(([name, property]) => jsonField(name, property, required.has(name)));
}

const JSON_KINDS: Readonly<Record<string, Pick<FormField, "kind" | "hint">>> = {
  string: { kind: "text", hint: "" },
  integer: { kind: "number", hint: "a whole number" },
  number: { kind: "number", hint: "" },
  boolean: { kind: "boolean", hint: "" },
};

function jsonField(name: string, property: Json, isRequired: boolean): FormField {
  const common = { name, optional: !isRequired, initial: "", choices: [] };
  if (!isObject(property)) return { ...common, kind: "json", hint: "JSON" };
  const initial = property.default === undefined || property.default === null ? "" : asTyped(property.default);
  if (Array.isArray(property.enum) && (property.enum as readonly Json[]).every((one) => typeof one === "string"))
    return { ...common, initial, kind: "choice", hint: "", choices: property.enum as readonly string[] };
  const types = (Array.isArray(property.type) ? (property.type as readonly Json[]) : [property.type]).filter((one) => one !== "null");
  const format = typeof property.format === "string" ? property.format : "";
  const type = types.length === 1 ? asTyped(types[0]) : "";
  return { ...common, initial, ...(JSON_KINDS[type] ?? { kind: "json", hint: "JSON" }), ...(type === "string" ? { hint: format } : {}) };
}

/** What is wrong with a field as it is typed; undefined where nothing is. */
export function problemOf(field: FormField, typed: string): string | undefined {
  if (typed === "") return field.optional || field.kind === "text" ? undefined : "It is needed.";
  if (field.kind === "number" && !NUMBER.test(typed)) return "A number: 12, -3.5 or 1e6.";
  if (field.kind === "json" && !isJson(typed)) return "It is no JSON.";
  return undefined;
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** The JSON of a record, numbers digit for digit as they were typed. */
export function jsonOf(fields: readonly FormField[], typed: Readonly<Record<string, string>>): string {
  const members = fields
    .map((field) => [field, typed[field.name] ?? field.initial] as const)
    .filter(([field, text]) => text !== "" || !field.optional)
    .map(([field, text]) => `  ${JSON.stringify(field.name)}: ${memberOf(field, text)}`);
  return members.length === 0 ? "{}" : `{\n${members.join(",\n")}\n}`;
}

function memberOf(field: FormField, text: string): string {
  switch (field.kind) {
    case "text":
    case "choice":
      return JSON.stringify(text);
    case "boolean":
      return text === "true" ? "true" : "false";
    case "number":
    case "json":
      return text === "" ? "null" : text;
  }
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function asTyped(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
