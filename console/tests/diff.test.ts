// @vitest-environment node
import { expect, test } from "vitest";
import { diffLines, readable } from "@/lib/diff";

const marks = { same: " ", added: "+", removed: "-" };
const diff = (before: string[], after: string[]): string[] =>
  diffLines(before.join("\n"), after.join("\n")).map((line) => marks[line.kind] + line.text);

test("what came and what went is named, the rest is kept", () => {
  expect(diff(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"])).toEqual([" a", "-b", "+x", " c", " d", "+e"]);
});

test("equal texts have no difference", () => {
  expect(diff(["a", "b"], ["a", "b"])).toEqual([" a", " b"]);
});

test("a line that is moved goes and comes once", () => {
  expect(diff(["a", "b", "c"], ["b", "c", "a"])).toEqual(["-a", " b", " c", "+a"]);
});

test("JSON on one line is compared line by line, other schemas as they are", () => {
  expect(readable('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(readable("message M {}")).toBe("message M {}");
});
