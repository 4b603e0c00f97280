import { expect, test } from "vitest";
import { isOwnPath } from "@/pages/sign-in/SignIn";
import { bestMatches } from "@/shell/Jump";

test("names that begin with what is typed come first, letters in order last", () => {
  const names = ["open_reads", "old.orders", "orders", "tables"].map((name) => ({ name, kind: "topic" }));
  expect(bestMatches(names, "ord").map(({ name }) => name)).toEqual(["orders", "old.orders", "open_reads"]);
  expect(bestMatches(names, "xyz")).toEqual([]);
});

test("sign-in leads to the console's own pages alone", () => {
  expect(isOwnPath("/topics/orders?tab=schema")).toBe(true);
  for (const elsewhere of ["//evil.example", "https://evil.example/", "/\\evil.example", "", "javascript:alert(1)"])
    expect(isOwnPath(elsewhere)).toBe(false);
});
