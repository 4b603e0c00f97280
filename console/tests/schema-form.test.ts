// @vitest-environment node
import { describe, expect, test } from "vitest";
import { formOf, jsonOf, problemOf, type FormField } from "@/lib/schema-form";

const avro = (...fields: object[]): readonly FormField[] =>
  formOf("AVRO", JSON.stringify({ type: "record", name: "R", fields })) ?? [];

describe("fields of an Avro record", () => {
  test("each type has its kind of field", () => {
    const fields = avro(
      { name: "id", type: "long" },
      { name: "note", type: ["null", "string"], default: null },
      { name: "at", type: { type: "long", logicalType: "timestamp-millis" } },
      { name: "total", type: { type: "bytes", logicalType: "decimal", precision: 10, scale: 2 } },
      { name: "channel", type: { type: "enum", name: "C", symbols: ["WEB", "SHOP"] } },
      { name: "lines", type: { type: "array", items: "string" } },
      { name: "either", type: ["string", "long"] },
    );
    expect(fields.map((field) => field.kind)).toEqual(["number", "text", "text", "number", "choice", "json", "json"]);
    expect(fields.map((field) => field.optional)).toEqual([false, true, false, false, false, false, false]);
    expect(fields[4]?.choices).toEqual(["WEB", "SHOP"]);
  });

  test("numbers stay digit for digit, what is empty and optional is left out", () => {
    const fields = avro({ name: "id", type: "long" }, { name: "note", type: ["null", "string"] }, { name: "ok", type: "boolean" });
    const text = jsonOf(fields, { id: "9007199254740993", ok: "true" });
    expect(text).toContain('"id": 9007199254740993');
    expect(JSON.parse(text)).not.toHaveProperty("note");
    expect(JSON.parse(text)).toMatchObject({ ok: true });
  });

  test("a text is quoted, whatever is in it", () => {
    const fields = avro({ name: "note", type: "string" });
    expect(JSON.parse(jsonOf(fields, { note: '","injected":"x' }))).toEqual({ note: '","injected":"x' });
  });
});

test("a JSON Schema's properties are fields, and those that are required are needed", () => {
  const schema = { type: "object", required: ["id"], properties: { id: { type: "integer" }, tag: { enum: ["a", "b"] }, more: {} } };
  const fields = formOf("JSON", JSON.stringify(schema)) ?? [];
  expect(fields.map(({ name, kind, optional }) => [name, kind, optional])).toEqual([
    ["id", "number", false],
    ["tag", "choice", true],
    ["more", "json", true],
  ]);
  expect(problemOf(fields[0] as FormField, "")).toBe("It is needed.");
  expect(problemOf(fields[0] as FormField, "12a")).toMatch("A number");
  expect(problemOf(fields[2] as FormField, "{")).toBe("It is no JSON.");
});

test.each([
  ["PROTOBUF", 'syntax = "proto3"; message M {}'],
  ["AVRO", '"string"'],
  ["JSON", "true"],
  ["AVRO", "{ broken"],
])("a %s schema that is no record is typed as JSON: %s", (type, text) => {
  expect(formOf(type, text)).toBeNull();
});
