// @vitest-environment node
import { describe, expect, test } from "vitest";
import { formatBytes, formatDuration, formatRelative, formatUtc, plural } from "@/lib/format";

describe("sizes", () => {
  test.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1.00 kB"],
    [999_600, "1.00 MB"],
    [12_345_678, "12.3 MB"],
    [123_456_789_012, "123 GB"],
  ])("%d bytes are written %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe("durations", () => {
  test.each([
    [0.0004, "0 ms"],
    [0.25, "250 ms"],
    [0.9999, "1 s"],
    [59.9, "59 s"],
    [60, "1 min"],
    [3725, "1 h 2 min"],
    [90_000, "1 d 1 h"],
  ])("%d seconds are written %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});

describe("times", () => {
  test.each([
    [1000, 1002, "just now"],
    [1000, 1030, "30 s ago"],
    [1000, 4600, "1 h ago"],
    [4600, 1000, "in 1 h"],
  ])("%d seen at %d is %s", (at, now, text) => {
    expect(formatRelative(at, now)).toBe(text);
  });

  test("the exact time is in UTC", () => {
    expect(formatUtc(1_763_575_445)).toBe("2025-11-19 18:04:05 UTC");
    expect(formatUtc(1_763_575_445.12)).toBe("2025-11-19 18:04:05.120 UTC");
  });
});

test("one is not several", () => {
  expect(plural(1, "row")).toBe("1 row");
  expect(plural(1200, "row")).toBe("1,200 rows");
});
