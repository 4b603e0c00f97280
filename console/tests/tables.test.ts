import { describe, expect, it } from "vitest";
import { parseExact, rowsOf } from "@/api/lake";
import type { Reading, Snapshot } from "@/api/tables";
import { alterable, alterCommand, optionsOf, renameProblem } from "@/pages/tables/alter";
import { acceptable, contentText, hexDump, maintained, offsetsText, partitionText, sizeBins, takenUpSql, timeOf } from "@/pages/tables/figures";
import { recipes, timeTravelSql } from "@/pages/tables/read";
import { needsAttention, rankOf, stateCounts } from "@/pages/tables/states";

describe("the list of tables", () => {
  it("puts those that need somebody first", () => {
    const states = ["Running", "Suspended", "Syncing", "Failed", "Degraded", "Pending"];
    expect([...states].sort((a, b) => rankOf(a) - rankOf(b))).toEqual(["Failed", "Suspended", "Degraded", "Pending", "Syncing", "Running"]);
    expect(states.filter((state) => needsAttention({ state }))).toEqual(["Suspended", "Failed", "Degraded"]);
  });

  it("counts the states that there are", () => {
    expect(stateCounts([{ state: "Running" }, { state: "Failed" }, { state: "Running" }])).toEqual([
      ["Failed", 1],
      ["Running", 2],
    ]);
  });
});

describe("what a table is made of", () => {
  it("shows sizes from the smallest bucket that has files to the largest", () => {
    const bucket = (from: number, to: number | null, files: number) => ({ from, to, files, bytes: files * from });
    const sizes = [bucket(0, 65536, 0), bucket(65536, 1048576, 3), bucket(1048576, 4194304, 0), bucket(4194304, null, 1)];
    expect(sizeBins(sizes).map(({ label, files }) => [label, files])).toEqual([
      ["64 KiB – 1 MiB", 3],
      ["1 MiB – 4 MiB", 0],
      ["4 MiB and more", 1],
    ]);
    expect(sizeBins([bucket(0, 65536, 2)])[0]?.label).toBe("under 64 KiB");
    expect(sizeBins([bucket(0, 65536, 0)])).toEqual([]);
  });

  it("names partitions by their values", () => {
    expect(partitionText({ partition: { day: "2026-01-01", country: null, express: true } })).toBe("day = 2026-01-01, country = NULL, express = true");
    expect(partitionText({ partition: {} })).toBe("all rows");
  });

  it("lists what was done beside batches, the newest first", () => {
    const totals = (files: number) => ({ files, bytes: files * 10, rows: 5 });
    const snapshot = (id: string, action: string, at: number) =>
      ({ snapshot_id: id, action, committed_at: at, before: totals(4), after: totals(1), asked_by: null }) as unknown as Snapshot;
    const events = [
      { id: 1, at: 3, subject: "t", kind: "expire done", message: "snapshots_before: 9, snapshots_after: 2", age: 0 },
      { id: 2, at: 4, subject: "t", kind: "Running", message: "", age: 0 },
    ];
    const done = maintained([snapshot("b", "batch", 9000), snapshot("c", "compact", 2000)], events);
    expect(done.map((one) => [one.what, one.at, one.before?.files, one.after?.files, one.text])).toEqual([
      ["expire done", 3, undefined, undefined, "snapshots before: 9, snapshots after: 2"],
      ["compact", 2, 4, 1, ""],
    ]);
  });

  it("knows what can be accepted from what the engine says", () => {
    expect(acceptable("records are gone: `headgate table resume orders --accept lost`")).toBe("lost");
    expect(acceptable("the topic was created again, --accept new-topic")).toBe("new-topic");
    expect(acceptable("a record cannot be decoded")).toBeNull();
  });

  it("writes offsets by partition, in their order", () => {
    expect(offsetsText({ "10": 3, "2": 1 })).toBe("2:1 10:3");
    expect(offsetsText(null)).toBe("");
  });
});

describe("dead letters", () => {
  it("are shown byte by byte, with what is text in them", () => {
    expect(hexDump({ hex: "00000000633c623e", bytes: 8 })).toBe("000000  00 00 00 00 63 3c 62 3e                          ....c<b>");
    expect(hexDump({ hex: "41", bytes: 20 })).toContain("… 19 more bytes");
    expect(hexDump({ hex: "", bytes: 0 })).toBe("");
  });

  it("are shown as far as they could be decoded", () => {
    expect(contentText({ content: "<script>" })).toBe("<script>");
    expect(contentText({ content: { a: 1 } })).toBe('{\n  "a": 1\n}');
  });

  it("are asked for by names that are quoted", () => {
    expect(takenUpSql("lo`cal", "it's.dlq", "it's\\", 5)).toBe(
      "SELECT `partition`, `offset`, replay_id, replayed_at FROM `lo``cal`.`it's.dlq` " +
        "WHERE topic = 'it\\'s\\\\' AND replayed_at IS NOT NULL ORDER BY failed_at DESC LIMIT 5",
    );
  });

  it("have times with and without a zone's sign", () => {
    expect(timeOf("1970-01-01 00:00:01.500000+00:00")).toBe(1.5);
    expect(timeOf("1970-01-01T00:00:02Z")).toBe(2);
    expect(timeOf(null)).toBeNull();
  });
});

describe("rows of the lake", () => {
  it("keep whole numbers that would be rounded, as text", () => {
    expect(parseExact('{"a": 9007199254740993, "b": 12, "c": 1.5}')).toEqual({ a: "9007199254740993", b: 12, c: 1.5 });
  });

  it("are those before the last line", () => {
    expect(rowsOf('{"op":"insert","row":{"a":1}}\n{"op":"end","state":"Completed"}\n')).toEqual([{ a: 1 }]);
  });

  it("that failed, or stopped short, are a failure", () => {
    expect(() => rowsOf('{"op":"error","error":"QueryFailed","message":"no such column","remedy":"see"}')).toThrow("no such column");
    expect(() => rowsOf('{"op":"insert","row":{"a":1}}\n')).toThrow("ended before");
    expect(() => rowsOf('{"op":"end","state":"Cancelled"}')).toThrow("cancelled");
  });
});

describe("what is altered", () => {
  const spec = {
    freshness_seconds: 10,
    on_error: "suspend",
    dead_letters: null,
    formats: ["iceberg"],
    tombstones: "bad",
    partition: null,
    event_time: null,
    metadata: ["timestamp"],
    readers: [],
  } as unknown as Parameters<typeof alterable>[0];

  it("is nothing while the form says how it is", () => {
    expect(optionsOf(spec, alterable(spec))).toEqual({});
  });

  it("is only what differs, and the command says the same", () => {
    const options = optionsOf(spec, {
      ...alterable(spec),
      freshness: "5s",
      onError: "log",
      formats: "iceberg,delta",
      partition: "day(at)\nbucket(16, id)",
      metadata: [],
      readers: "spark, athena",
      renames: "old name=new",
    });
    expect(options).toEqual({
      freshness: "5s",
      on_error: "log",
      formats: ["iceberg", "delta"],
      partition: ["day(at)", "bucket(16, id)"],
      metadata: ["none"],
      readers: ["spark", "athena"],
      renames: { "old name": "new" },
    });
    expect(alterCommand("orders", options)).toBe(
      "headgate table alter orders --freshness 5s --on-error log --formats iceberg,delta --partition 'day(at)' --partition 'bucket(16, id)' " +
        "--metadata none --readers spark,athena --rename 'old name=new'",
    );
    expect(alterCommand("-x", { freshness: "5s" })).toBe("headgate table alter --freshness 5s -- -x");
  });

  it("says which line renames nothing", () => {
    expect(renameProblem("a=b\nc")).toContain("'c'");
    expect(renameProblem("a=b\n")).toBeUndefined();
  });
});

describe("how to read a table", () => {
  const reading = (part: Partial<Reading> = {}): Reading => ({
    namespace: "local",
    table: 'shop"s.`orders`',
    formats: ["iceberg", "delta"],
    format_version: 3,
    location: "file:///data/it's",
    storage: null,
    catalog: {
      uri: "http://127.0.0.1:8080/iceberg",
      public_uri: null,
      warehouse: null,
      token_uri: "http://127.0.0.1:8080/iceberg/v1/oauth/tokens",
      scope: "catalog",
      needs_credential: false,
    },
    ...part,
  });
  const text = (id: string, of = reading()) =>
    recipes(of)
      .find((recipe) => recipe.id === id)
      ?.blocks.map((block) => block.text)
      .join("\n");

  it("quotes names as each language does", () => {
    expect(text("duckdb")).toContain('FROM lake."local"."shop""s.`orders`";');
    expect(text("spark")).toContain('FROM headgate.`local`.`shop"s.``orders```');
    expect(text("trino")).toContain('FROM headgate."local"."shop""s.`orders`";');
    expect(text("pyiceberg")).toContain('catalog.load_table(("local", "shop\\"s.`orders`"))');
    expect(text("delta-rs")).toContain('DeltaTable("/data/it\'s")');
    expect(text("delta-duckdb")).toContain("delta_scan('/data/it''s')");
  });

  it("has recipes of the formats that it is read in", () => {
    const ids = (formats: Reading["formats"]) => recipes(reading({ formats })).map((recipe) => recipe.id);
    expect(ids(["iceberg"])).toEqual(["duckdb", "pyiceberg", "pandas", "polars", "spark", "trino"]);
    expect(ids(["delta"])).toEqual(["delta-rs", "delta-spark", "delta-duckdb"]);
  });

  it("gives the address that others reach it by, for tokens too", () => {
    const elsewhere = reading({ catalog: { ...reading().catalog, public_uri: "https://lake.example.org/iceberg" } });
    expect(text("pyiceberg", elsewhere)).toContain('"oauth2-server-uri": "https://lake.example.org/iceberg/v1/oauth/tokens"');
    expect(text("duckdb", elsewhere)).not.toContain("127.0.0.1");
  });

  it("tells Trino of names with capitals", () => {
    expect(text("trino", reading({ table: "Orders" }))).toContain("case-insensitive-name-matching=true");
    expect(text("trino", reading({ table: "orders" }))).not.toContain("case-insensitive");
  });

  it("travels in time by a snapshot's id, or a tag in quotes", () => {
    expect(timeTravelSql("local", "orders", "4127543091375834912", 20)).toBe("SELECT * FROM `local`.`orders` VERSION AS OF 4127543091375834912 LIMIT 20");
    expect(timeTravelSql("local", "orders", "it's")).toBe("SELECT * FROM `local`.`orders` VERSION AS OF 'it\\'s'");
  });
});
