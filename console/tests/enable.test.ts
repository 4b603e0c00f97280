import { describe, expect, it } from "vitest";
import { launchSteps, stepOf, syncedShare } from "@/pages/tables/launch";
import {
  commandOf,
  fieldText,
  locationName,
  NOTHING_SAID,
  problemsOf,
  requestOf,
  storageOf,
  yamlOf,
  type Wanted,
} from "@/pages/tables/wanted";

const wanted = (part: Partial<Wanted>): Wanted => ({ ...NOTHING_SAID, topic: "orders", ...part });

describe("what the wizard asks for", () => {
  it("says nothing that is the default", () => {
    expect(requestOf(wanted({}))).toEqual({ topic: "orders" });
    expect(commandOf(requestOf(wanted({})))).toBe("headgate table enable orders");
    expect(yamlOf(requestOf(wanted({})))).toBe("tables:\n  orders: {}\n");
  });

  it("says all that was chosen, as a request, a command and YAML", () => {
    const all = wanted({
      formats: "both",
      storage: "named",
      location: "lake",
      mode: "upsert",
      key: " id, region ",
      start: "2026-01-31T12:00:00Z",
      layout: "fields",
      partition: [
        { transform: "day", column: "paid_at", size: "" },
        { transform: "bucket", column: "id", size: "16" },
        { transform: "identity", column: "country", size: "" },
      ],
      freshness: "5s",
      onError: "log",
      deadLetters: "bad",
      metadata: ["offset", "timestamp", "key"],
      readers: ["athena", "spark"],
      valueFormat: "json",
      valueColumns: "id bigint, price decimal(12,2)",
    });
    const request = requestOf(all);
    expect(request).toEqual({
      topic: "orders",
      formats: ["iceberg", "delta"],
      storage: "lake",
      mode: "upsert",
      key: ["id", "region"],
      from: "2026-01-31T12:00:00Z",
      partition: ["day(paid_at)", "bucket(16, id)", "country"],
      freshness: "5s",
      on_error: "log",
      dead_letters: "bad",
      metadata: ["offset", "timestamp", "key"],
      readers: ["spark", "athena"],
      value_format: "json",
      value_columns: "id bigint, price decimal(12,2)",
    });
    expect(commandOf(request)).toBe(
      "headgate table enable orders --formats iceberg,delta --storage lake --mode upsert --key id,region " +
        "--from 2026-01-31T12:00:00Z --partition 'day(paid_at)' --partition 'bucket(16, id)' --partition country " +
        "--freshness 5s --on-error log --dead-letters bad --metadata offset,timestamp,key --readers spark,athena " +
        "--value-format json --value-columns 'id bigint, price decimal(12,2)'",
    );
    expect(yamlOf(request)).toBe(
      [
        "tables:",
        "  orders:",
        "    formats: [iceberg, delta]",
        "    storage: lake",
        "    mode: upsert",
        "    key: [id, region]",
        '    from: "2026-01-31T12:00:00Z"',
        '    partition: ["day(paid_at)", "bucket(16, id)", country]',
        '    freshness: "5s"',
        "    on_error: log",
        "    dead_letters: bad",
        "    metadata: [offset, timestamp, key]",
        "    readers: [spark, athena]",
        "    value_format: json",
        '    value_columns: "id bigint, price decimal(12,2)"',
        "",
      ].join("\n"),
    );
  });

  it("leaves out what another choice has made meaningless", () => {
    const request = requestOf(
      wanted({ mode: "append", key: "id", deadLetters: "x", layout: "none", eventTime: "at", valueColumns: "id int", location: "lake" }),
    );
    expect(request).toEqual({ topic: "orders", mode: "append", partition: ["none"] });
  });

  it.each([
    [["topic", "partition", "offset", "timestamp", "timestamp-type", "key", "headers", "leader-epoch", "schema-id"], ["all"]],
    [[], ["none"]],
    [["timestamp"], undefined],
  ])("says metadata columns %j as %j", (metadata, said) => {
    expect(requestOf(wanted({ metadata })).metadata).toEqual(said);
  });

  it("makes a location of a bucket that is typed, with the role of one that is there", () => {
    const typed = wanted({ storage: "bucket", bucket: "s3://new-lake/tables ", location: "new-lake-tables", role: "lake" });
    const storage = storageOf(typed, {
      role_arn: "arn:aws:iam::123456789012:role/lake",
      external_id: "hg-1",
      region: "eu-central-1",
      endpoint: null,
      path_style: true,
      encryption: "none",
      kms_key: null,
    });
    expect(commandOf(requestOf(typed), storage)).toBe(
      "headgate storage add new-lake-tables s3://new-lake/tables --role arn:aws:iam::123456789012:role/lake --external-id hg-1 " +
        "--region eu-central-1 --path-style\nheadgate table enable orders --storage new-lake-tables",
    );
    expect(yamlOf(requestOf(typed), storage)).toBe(
      [
        "storage:",
        "  new-lake-tables:",
        '    uri: "s3://new-lake/tables"',
        '    role_arn: "arn:aws:iam::123456789012:role/lake"',
        "    external_id: hg-1",
        "    region: eu-central-1",
        "    path_style: true",
        "tables:",
        "  orders:",
        "    storage: new-lake-tables",
        "",
      ].join("\n"),
    );
    expect(locationName("s3://new-lake/tables/")).toBe("new-lake-tables");
  });
});

describe("hostile names", () => {
  it.each([
    ["-x", "headgate table enable -- -x"],
    ["a b; rm -rf /", "headgate table enable 'a b; rm -rf /'"],
    ["it's $(here) `now`", "headgate table enable 'it'\\''s $(here) `now`'"],
    ["a\u202eb'\\", "headgate table enable $'a\\u202eb\\'\\\\'"],
    ["tab\there", "headgate table enable $'tab\\u0009here'"],
  ])("are one word of a command: %j", (topic, command) => {
    expect(commandOf(requestOf(wanted({ topic })))).toBe(command);
  });

  it("that begin with a dash follow the options", () => {
    expect(commandOf(requestOf(wanted({ topic: "-x", freshness: "5s" })))).toBe("headgate table enable --freshness 5s -- -x");
  });

  it.each([
    ["null", '"null"'],
    ["on", '"on"'],
    ["1e3", '"1e3"'],
    ["-", '"-"'],
    ["a: b # c", '"a: b # c"'],
    ['"', '"\\""'],
    ["${HOME}", '"$${HOME}"'],
    ["a\u2028b\u202e", '"a\\u2028b\\u202e"'],
    ["shop.orders", "shop.orders"],
  ])("are one key of YAML: %j", (topic, key) => {
    expect(yamlOf(requestOf(wanted({ topic })))).toBe(`tables:\n  ${key}: {}\n`);
  });
});

describe("partition fields", () => {
  it.each([
    [{ transform: "day", column: " at ", size: "" }, "day(at)"],
    [{ transform: "bucket", column: "id", size: "16" }, "bucket(16, id)"],
    [{ transform: "truncate", column: "name", size: "4" }, "truncate(4, name)"],
    [{ transform: "identity", column: "country", size: "9" }, "country"],
    [{ transform: "identity", column: "odd(name)", size: "" }, "identity(odd(name))"],
    [{ transform: "identity", column: "none", size: "" }, "identity(none)"],
  ] as const)("%j is %s", (field, text) => {
    expect(fieldText(field)).toBe(text);
  });

  it("are said to be wrong where they are", () => {
    const problem = (column: string, size: string) =>
      problemsOf(wanted({ layout: "fields", partition: [{ transform: "bucket", column, size }] })).partition;
    expect(problem("id", "16")).toBeUndefined();
    expect(problem("", "16")).toBeDefined();
    expect(problem("id", "0")).toBeDefined();
    expect(problemsOf(wanted({ layout: "fields" })).partition).toBeDefined();
  });
});

describe("problems", () => {
  it("has none with a topic alone", () => {
    expect(problemsOf(wanted({}))).toEqual({});
  });

  it.each([
    [{ topic: "" }, "topic"],
    [{ storage: "named" }, "location"],
    [{ storage: "bucket", location: "a", bucket: "lake", role: "x" }, "bucket"],
    [{ storage: "bucket", location: "a.b", bucket: "s3://lake", role: "x" }, "location"],
    [{ storage: "bucket", location: "a", bucket: "s3://lake" }, "role"],
    [{ freshness: "soon" }, "freshness"],
    [{ start: "yesterday" }, "start"],
    [{ valueFormat: "json" }, "valueColumns"],
  ] as const)("%j is wrong in %s", (part, field) => {
    expect(Object.keys(problemsOf(wanted(part)))).toEqual([field]);
  });
});

describe("a table that was launched", () => {
  const states = (state: string, reason = "", reached = 0) =>
    launchSteps({ state, reason, lag: 0, rows: 0 }, reached).map((step) => `${step.label} ${step.state}`);

  it("goes from Pending through Syncing to Running", () => {
    expect(states("Pending")).toEqual(["Pending now", "Syncing later", "Running later"]);
    expect(states("Syncing")).toEqual(["Pending done", "Syncing now", "Running later"]);
    expect(states("Running")).toEqual(["Pending done", "Syncing done", "Running done"]);
  });

  it("says what it waits for", () => {
    expect(launchSteps({ state: "Pending", reason: "waiting for a schema", lag: null, rows: null })[0]?.detail).toBe("waiting for a schema");
  });

  it("stops where it was when it is suspended, with the reason", () => {
    expect(states("Suspended", "a bad record", stepOf("Syncing"))).toEqual(["Pending done", "Suspended stopped", "Running later"]);
    expect(launchSteps({ state: "Suspended", reason: "a bad record", lag: 1, rows: 0 }, 1)[1]?.detail).toBe("a bad record");
  });

  it("has come as far as its rows have", () => {
    expect(syncedShare({ rows: 75, lag: 25 })).toBe(0.75);
    expect(syncedShare({ rows: null, lag: 25 })).toBeUndefined();
    expect(syncedShare({ rows: 0, lag: 0 })).toBeUndefined();
  });
});
