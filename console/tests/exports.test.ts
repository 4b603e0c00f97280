import { expect, test } from "vitest";
import { fileAddress, isOpen, type Run } from "@/api/exports";
import { keptWords } from "@/pages/exports/DefinitionOf";
import { nameOf } from "@/pages/exports/Runs";
import { periodWords, secondsOf } from "@/pages/exports/times";
import { environmentName, valueWords } from "@/pages/settings/values";

test("whole days are named by the first and the last that is in the period", () => {
  expect(periodWords("2026-11-09T00:00:00+01:00", "2026-11-16T00:00:00+01:00")).toBe("2026-11-09 – 2026-11-15");
  expect(periodWords("2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00")).toBe("2026-03-29");
  expect(periodWords("2026-01-01T06:00:00+00:00", "2026-01-01T07:30:00+00:00")).toBe("2026-01-01 06:00 – 2026-01-01 07:30");
  expect(secondsOf("2026-03-30T00:00:00+02:00")).toBe(Date.UTC(2026, 2, 29, 22) / 1000);
  expect(secondsOf(null)).toBeNull();
});

test("a run's file has an address that its name cannot change", () => {
  const run = { export: "a/../b", id: "0f" } as Run;
  expect(fileAddress(run)).toBe("/api/v1/exports/a%2F..%2Fb/runs/0f/file");
  expect(nameOf("s3://bucket/partners/x_1.csv")).toBe("x_1.csv");
  expect(isOpen({ state: "Written" } as Run)).toBe(true);
  expect(isOpen({ state: "Done" } as Run)).toBe(false);
  expect(isOpen(null)).toBe(false);
});

test("how long files are kept is said in words", () => {
  expect(keptWords({})).toBe("all files");
  expect(keptWords({ keep_files: 4, keep_for: "90d" })).toBe("the newest 4, for 90d");
});

test("settings are written as one would write them", () => {
  expect(valueWords(["a", "b"])).toBe("a, b");
  expect(valueWords({})).toBe("");
  expect(valueWords(false)).toBe("false");
  expect(valueWords({ a: [1] })).toBe('{"a":[1]}');
  expect(environmentName("catalog.warehouse")).toBe("HEADGATE_CATALOG__WAREHOUSE");
});
