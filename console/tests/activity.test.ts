import { expect, test } from "vitest";
import { nextPage, PAGE } from "@/api/activity";
import { subjectOf, thingOf } from "@/pages/activity/subjects";

test("an event's subject leads to its page", () => {
  expect(subjectOf("shop.orders")).toEqual({ noun: "table", name: "shop.orders", href: "/tables/shop.orders" });
  expect(subjectOf("statement a/b")).toEqual({ noun: "statement", name: "a/b", href: "/statements/a%2Fb" });
  expect(subjectOf("catalog athena").href).toBe("/integrations/catalogs/athena");
  expect(subjectOf("engine")).toEqual({ noun: "process", name: "engine", href: null });
  expect(subjectOf("world orders").href).toBeNull();
});

test("what was asked of the catalog names tables with their namespace", () => {
  const commit = "POST /iceberg/v1/namespaces/local/tables/shop.orders";
  expect(thingOf("table local.shop.orders", commit, "local").href).toBe("/tables/shop.orders");
  expect(thingOf("table sandbox.mine", commit, "local").href).toBeNull();
  expect(thingOf("table local.orders", "POST /api/v1/tables/local.orders/compact", "local").href).toBe("/tables/local.orders");
});

test("the page after a short one is not asked for", () => {
  const page = (length: number) => Array.from({ length }, (_, index) => ({ id: 1000 - index }));
  expect(nextPage(page(PAGE))).toBe(1000 - PAGE + 1);
  expect(nextPage(page(PAGE - 1))).toBeUndefined();
});
