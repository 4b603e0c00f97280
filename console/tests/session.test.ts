import { describe, expect, test } from "vitest";
import type { Session } from "@/api/model";
import { matches, may } from "@/api/session";

const of = (role: "reader" | "writer" | "admin", table: string): Session => ({
  name: "ada",
  roles: [{ role, namespace: "*", table }],
  is_admin: false,
  by: "credential",
  expires_at: null,
});

describe("what a role may do", () => {
  test("nobody may do anything", () => {
    expect(may(null, "reader", "orders")).toBe(false);
  });

  test("a writer reads and writes what its pattern names, and is no admin of it", () => {
    const writer = of("writer", "shop.*");
    expect(may(writer, "reader", "shop.orders")).toBe(true);
    expect(may(writer, "writer", "shop.orders")).toBe(true);
    expect(may(writer, "admin", "shop.orders")).toBe(false);
    expect(may(writer, "reader", "payroll")).toBe(false);
  });

  test("a role on some topics is none on everything", () => {
    expect(may(of("admin", "shop.*"), "admin")).toBe(false);
    expect(may(of("reader", "*"), "reader")).toBe(true);
  });
});

test("a pattern's other characters stand for themselves", () => {
  expect(matches("a.b", "axb")).toBe(false);
  expect(matches("a?b*", "a.bcd")).toBe(true);
  expect(matches("(a", "(a")).toBe(true);
});
