import { useDeferredValue, useMemo, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { storagesQuery } from "@/api/tables";
import { topicsQuery, type TopicSummary } from "@/api/topics";
import { useStatus } from "@/api/status";
import { Button, ButtonLink, IconButton } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Count } from "@/components/Figures";
import { CheckField, SearchField, Select, SelectField, TextField, Tiles } from "@/components/Form";
import { EmptyState, ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { plural } from "@/lib/format";
import {
  fieldText,
  isKeyed,
  isSized,
  locationName,
  METADATA,
  READERS,
  TRANSFORMS,
  type Formats,
  type PartitionField,
  type Problems,
  type Transform,
  type Wanted,
} from "./wanted";

/** The steps of the wizard: what each asks. */

export interface StepProps {
  wanted: Wanted;
  /** What is wrong, once somebody tried to go on. */
  problems: Problems;
  isAdmin: boolean;
  change: (part: Partial<Wanted>) => void;
}

const MOST_SHOWN = 60;

export function TopicStep({ wanted, problems, choose }: StepProps & { choose: (topic: string) => void }) {
  const { data, error, refetch } = useQuery(topicsQuery(false));
  const tables = useStatus().data?.tables;
  const [text, setText] = useState("");
  const query = useDeferredValue(text);
  const free = useMemo(() => {
    const taken = new Set(tables?.map((table) => table.topic));
    return (data ?? []).filter((topic) => topic.table === null && !taken.has(topic.name));
  }, [data, tables]);
  const found = useMemo(() => free.filter(({ name }) => name.toLowerCase().includes(query.toLowerCase())), [free, query]);
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Spinner label="Looking for topics" />;
  if (free.length === 0)
    return (
      <EmptyState
        title={data.length === 0 ? "No topic yet" : "Every topic is a table already"}
        icon="topics"
        command={["headgate topic create NAME", "headgate datagen orders --limit 1000"]}
      >
        A topic must be there before it can be a table. Create one, or write some made-up records.
      </EmptyState>
    );
  return (
    <Panel title="Which topic?" about="Topics that are not a table yet." actions={<SearchField label="Search topics" value={text} onChange={setText} />}>
      <fieldset className="topic-choice">
        <legend className="visually-hidden">Topic</legend>
        {found.slice(0, MOST_SHOWN).map((topic) => (
          <TopicChoice key={topic.name} topic={topic} chosen={topic.name === wanted.topic} choose={choose} />
        ))}
        {found.length > MOST_SHOWN && <p className="faint">{plural(found.length - MOST_SHOWN, "more topic")}: search for one.</p>}
        {found.length === 0 && (
          <p className="faint">
            No topic matches <bdi>“{query}”</bdi>.
          </p>
        )}
      </fieldset>
      {problems.topic !== undefined && (
        <p className="wizard-problem" role="alert">
          {problems.topic}
        </p>
      )}
    </Panel>
  );
}

function TopicChoice({ topic, chosen, choose }: { topic: TopicSummary; chosen: boolean; choose: (topic: string) => void }) {
  return (
    <label className={chosen ? "topic-row chosen" : "topic-row"}>
      <input
        type="radio"
        name="topic"
        checked={chosen}
        onChange={() => {
          choose(topic.name);
        }}
      />
      <span className="topic-name">
        <Clip text={topic.name} />
      </span>
      <span className="faint small">
        {topic.records != null && (
          <>
            <Count value={topic.records} short /> records ·{" "}
          </>
        )}
        {plural(topic.partitions.length, "partition")}
      </span>
    </label>
  );
}

const FORMAT_TILES: readonly { value: Formats; label: string; description: string }[] = [
  { value: "iceberg", label: "Apache Iceberg", description: "For Spark, Trino, DuckDB, Snowflake, Athena, PyIceberg and whatever speaks to an Iceberg catalog." },
  { value: "delta", label: "Delta Lake", description: "For Databricks, Unity Catalog, delta-rs, Polars and other readers of Delta." },
  { value: "both", label: "Both", description: "Iceberg and Delta over the same Parquet files: one copy, two formats." },
];

export function FormatStep({ wanted, problems, isAdmin, change }: StepProps) {
  return (
    <>
      <Panel title="Format">
        <Tiles
          label="What it is read as"
          value={wanted.formats}
          onChange={(formats) => {
            change({ formats });
          }}
          tiles={FORMAT_TILES}
        />
      </Panel>
      <Panel title="Storage">
        <div className="stack">
          <Tiles
            label="Where its files lie"
            value={wanted.storage}
            onChange={(storage) => {
              change({ storage, location: "" });
            }}
            tiles={[
              { value: "managed", label: "Managed", description: "In Headgate's own warehouse. Nothing to set up." },
              { value: "named", label: "A storage location", description: "A bucket that was added under Integrations." },
              {
                value: "bucket",
                label: "Another bucket",
                description: isAdmin ? "Typed here, reached with the role of a location that is there." : "Takes an admin: it makes a new location.",
                disabled: !isAdmin,
              },
            ]}
          />
          {wanted.storage === "named" && <NamedLocation {...{ wanted, problems, isAdmin, change }} />}
          {wanted.storage === "bucket" && <TypedBucket {...{ wanted, problems, isAdmin, change }} />}
        </div>
      </Panel>
    </>
  );
}

function NamedLocation({ wanted, problems, isAdmin, change }: StepProps) {
  const { data, error } = useQuery(storagesQuery(isAdmin));
  if (!isAdmin)
    // Which locations there are is for admins to see.
    return (
      <div className="form">
        <TextField
          label="Name of the location"
          hint="Who set it up told you its name: only admins see the list."
          value={wanted.location}
          error={problems.location}
          onChange={(location) => {
            change({ location });
          }}
        />
      </div>
    );
  if (error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return <Spinner />;
  if (data.length === 0) return <NoLocation />;
  return (
    <div className="form">
      <SelectField
        label="Location"
        value={wanted.location}
        error={problems.location}
        onChange={(location) => {
          change({ location });
        }}
        options={[{ value: "", label: "Choose one" }, ...data.map((one) => ({ value: one.name ?? "", label: `${one.name ?? ""} · ${one.uri}` }))]}
      />
    </div>
  );
}

function NoLocation() {
  return (
    <Notice tone="info" title="No storage location yet" action={<ButtonLink small href={paths.addIntegration("storage")}>Add one</ButtonLink>}>
      Add a bucket first, with the role that Headgate takes on to write there.
    </Notice>
  );
}

function TypedBucket({ wanted, problems, change }: StepProps) {
  const { data, error } = useQuery(storagesQuery(true));
  if (error !== null) return <ErrorNotice error={error} />;
  if (data === undefined) return <Spinner />;
  const roles = data.filter((one) => one.role_arn != null);
  if (roles.length === 0) return <NoLocation />;
  return (
    <div className="form">
      <SelectField
        label="Role of"
        hint="The role must allow this bucket too: Integrations has the policy to paste."
        value={wanted.role}
        error={problems.role}
        onChange={(role) => {
          change({ role });
        }}
        options={[{ value: "", label: "Choose a location" }, ...roles.map((one) => ({ value: one.name ?? "", label: `${one.name ?? ""} · ${one.role_arn ?? ""}` }))]}
      />
      <TextField
        label="Bucket"
        placeholder="s3://bucket/prefix"
        value={wanted.bucket}
        error={problems.bucket}
        onChange={(bucket) => {
          // The name follows the bucket until somebody gives it one of its own.
          const follows = wanted.location === locationName(wanted.bucket);
          change(follows ? { bucket, location: locationName(bucket) } : { bucket });
        }}
      />
      <TextField
        label="Name of the new location"
        hint="Further tables can be put there by this name."
        value={wanted.location}
        error={problems.location}
        onChange={(location) => {
          change({ location });
        }}
      />
    </div>
  );
}

export function RowsStep({ wanted, problems, change }: StepProps) {
  return (
    <>
      <Panel title="Rows">
        <div className="stack">
          <Tiles
            label="What a record does"
            value={wanted.mode}
            onChange={(mode) => {
              change({ mode });
            }}
            tiles={[
              { value: "auto", label: "Automatic", description: "Upsert where the topic is compacted, else append." },
              { value: "append", label: "Append", description: "Each record is a row." },
              { value: "upsert", label: "Upsert", description: "The last record of a key is its row; a tombstone deletes it." },
              { value: "scd2", label: "Every version", description: "Each version of a key's row, from when to when it held (SCD2)." },
            ]}
          />
          {isKeyed(wanted.mode) && wanted.mode !== "auto" && (
            <div className="form">
              <TextField
                label="Key columns"
                optional
                placeholder="order_id, region"
                hint="Columns that tell rows apart. Without any, Kafka's key does."
                value={wanted.key}
                error={problems.key}
                onChange={(key) => {
                  change({ key });
                }}
              />
            </div>
          )}
        </div>
      </Panel>
      <Panel title="Partitions">
        <div className="stack">
          <Tiles
            label="How files are laid out"
            value={wanted.layout}
            onChange={(layout) => {
              change({ layout, partition: layout === "fields" && wanted.partition.length === 0 ? [NEW_FIELD] : wanted.partition });
            }}
            tiles={[
              { value: "default", label: "By day", description: "Of the event time, of the watermark's column, or of Kafka's timestamp." },
              { value: "fields", label: "By fields", description: "Days, hours, buckets, prefixes, or columns as they are." },
              { value: "none", label: "None", description: "All files side by side: for small tables." },
            ]}
          />
          {wanted.layout === "default" && (
            <div className="form">
              <TextField
                label="Event time"
                optional
                placeholder="ordered_at"
                hint="The column that says when it happened."
                value={wanted.eventTime}
                onChange={(eventTime) => {
                  change({ eventTime });
                }}
              />
            </div>
          )}
          {wanted.layout === "fields" && <FieldEditor fields={wanted.partition} problem={problems.partition} change={change} />}
        </div>
      </Panel>
      <More {...{ wanted, problems, change }} />
    </>
  );
}

const NEW_FIELD: PartitionField = { transform: "day", column: "", size: "16" };

const TRANSFORM_LABELS: Record<Transform, string> = {
  day: "Day of",
  hour: "Hour of",
  month: "Month of",
  year: "Year of",
  bucket: "Buckets of",
  truncate: "Prefix of",
  identity: "Value of",
};

interface FieldEditorProps {
  fields: readonly PartitionField[];
  problem: string | undefined;
  change: (part: Partial<Wanted>) => void;
}

function FieldEditor({ fields, problem, change }: FieldEditorProps) {
  const set = (index: number, part: Partial<PartitionField>): void => {
    change({ partition: fields.map((field, at) => (at === index ? { ...field, ...part } : field)) });
  };
  return (
    <div className="stack">
      <ol className="partition-fields">
        {fields.map((field, index) => (
          // Fields are known by their place alone.
          <li key={index} className="row">
            <Select
              aria-label={`Transform of field ${index + 1}`}
              value={field.transform}
              onChange={(transform) => {
                set(index, { transform });
              }}
              options={TRANSFORMS.map((value) => ({ value, label: TRANSFORM_LABELS[value] }))}
            />
            {isSized(field.transform) && (
              <input
                className="partition-size"
                aria-label={field.transform === "bucket" ? "How many buckets" : "How long the prefix is"}
                inputMode="numeric"
                value={field.size}
                onChange={(event) => {
                  set(index, { size: event.target.value });
                }}
              />
            )}
            <input
              aria-label={`Column of field ${index + 1}`}
              placeholder="column"
              dir="auto"
              autoComplete="off"
              spellCheck={false}
              value={field.column}
              onChange={(event) => {
                set(index, { column: event.target.value });
              }}
            />
            <code className="faint">
              <bdi>{field.column.trim() === "" ? "" : fieldText(field)}</bdi>
            </code>
            <IconButton
              small
              icon="close"
              label={`Remove field ${index + 1}`}
              onClick={() => {
                change({ partition: fields.filter((_, at) => at !== index) });
              }}
            />
          </li>
        ))}
      </ol>
      <div>
        <Button
          small
          icon="plus"
          onClick={() => {
            change({ partition: [...fields, NEW_FIELD] });
          }}
        >
          Add a field
        </Button>
      </div>
      {problem !== undefined && (
        <p className="wizard-problem" role="alert">
          <bdi>{problem}</bdi>
        </p>
      )}
    </div>
  );
}

const VALUE_FORMATS = [
  { value: "auto", label: "By schema id (Avro, JSON Schema, Protobuf)" },
  { value: "json", label: "Plain JSON with declared columns" },
  { value: "json-text", label: "JSON of any shape, as text" },
  { value: "json-variant", label: "JSON of any shape, as a variant" },
  { value: "connect-json", label: "Kafka Connect's JSON with its schema" },
  { value: "string", label: "Text" },
  { value: "bytes", label: "Bytes" },
];

const KEY_FORMATS = [{ value: "", label: "Left out (an upsert table finds its key by itself)" }, ...VALUE_FORMATS.slice(0, 3), ...VALUE_FORMATS.slice(4)];

function More({ wanted, problems, change }: Omit<StepProps, "isAdmin">) {
  return (
    <details className="panel wizard-more">
      <summary>What is in the topic, and where to start</summary>
      <div className="panel-body form">
        <SelectField
          label="Values"
          value={wanted.valueFormat}
          options={VALUE_FORMATS}
          onChange={(valueFormat) => {
            change({ valueFormat });
          }}
        />
        {wanted.valueFormat === "json" && (
          <TextField
            label="Columns of values"
            placeholder="id bigint, price decimal(12,2)"
            value={wanted.valueColumns}
            error={problems.valueColumns}
            onChange={(valueColumns) => {
              change({ valueColumns });
            }}
          />
        )}
        <SelectField
          label="Keys"
          value={wanted.keyFormat}
          options={KEY_FORMATS}
          onChange={(keyFormat) => {
            change({ keyFormat });
          }}
        />
        {wanted.keyFormat === "json" && (
          <TextField
            label="Columns of keys"
            placeholder="id bigint"
            value={wanted.keyColumns}
            error={problems.keyColumns}
            onChange={(keyColumns) => {
              change({ keyColumns });
            }}
          />
        )}
        <TextField
          label="Start"
          hint="earliest, latest, a time (2026-01-31T12:00:00Z), or offsets by partition (0:12,1:40)."
          value={wanted.start}
          error={problems.start}
          onChange={(start) => {
            change({ start });
          }}
        />
        <SelectField
          label="Envelope"
          value={wanted.envelope}
          options={[
            { value: "auto", label: "By the schema" },
            { value: "debezium", label: "Debezium: values are changes of rows" },
            { value: "none", label: "None: values are rows" },
          ]}
          onChange={(envelope) => {
            change({ envelope });
          }}
        />
        <SelectField
          label="Record types"
          value={wanted.recordTypes}
          options={[
            { value: "single", label: "One; another one suspends the table" },
            { value: "union", label: "Several: each is a struct column" },
          ]}
          onChange={(recordTypes) => {
            change({ recordTypes });
          }}
        />
        <SelectField
          label="Records without a value"
          value={wanted.tombstones}
          options={[
            { value: "bad", label: "Are bad records of an append table" },
            { value: "skip", label: "Are left out" },
          ]}
          onChange={(tombstones) => {
            change({ tombstones });
          }}
        />
      </div>
    </details>
  );
}

export function BehaviourStep({ wanted, problems, change }: StepProps) {
  return (
    <>
      <Panel title="Freshness">
        <div className="form">
          <TextField
            label="How old a record may be when it is in the table"
            placeholder="10s"
            optional
            hint="10 seconds, if nothing is said. Longer gives fewer and larger files."
            value={wanted.freshness}
            error={problems.freshness}
            onChange={(freshness) => {
              change({ freshness });
            }}
          />
        </div>
      </Panel>
      <Panel title="Errors">
        <div className="stack">
          <Tiles
            label="On a record that cannot be decoded exactly"
            value={wanted.onError}
            onChange={(onError) => {
              change({ onError });
            }}
            tiles={[
              { value: "suspend", label: "Suspend", description: "The table stops before it, and says which record it is." },
              { value: "log", label: "Dead letters", description: "It goes, raw, to a table and topic of its own, and can be replayed." },
              { value: "skip", label: "Skip", description: "It is left out, and counted." },
            ]}
          />
          {wanted.onError === "log" && (
            <div className="form">
              <TextField
                label="Dead letters go to"
                optional
                placeholder={`${wanted.topic}.dlq`}
                value={wanted.deadLetters}
                error={problems.deadLetters}
                onChange={(deadLetters) => {
                  change({ deadLetters });
                }}
              />
            </div>
          )}
        </div>
      </Panel>
      <Panel title="Metadata columns" about="What Kafka knows of a record, as columns _kafka_…">
        <Checks
          label="Metadata columns"
          all={METADATA}
          chosen={wanted.metadata}
          change={(metadata) => {
            change({ metadata });
          }}
        />
      </Panel>
      <Panel title="Readers" about="Name the engines that read it, and it is written so that all of them can. None is fine too.">
        <Checks
          label="Readers"
          all={READERS}
          chosen={wanted.readers}
          change={(readers) => {
            change({ readers });
          }}
        />
      </Panel>
    </>
  );
}

interface ChecksProps {
  label: string;
  all: readonly string[];
  chosen: readonly string[];
  change: (chosen: readonly string[]) => void;
}

function Checks({ label, all, chosen, change }: ChecksProps) {
  return (
    <fieldset className="wizard-checks">
      <legend className="visually-hidden">{label}</legend>
      {all.map((one) => (
        <CheckField
          key={one}
          label={one}
          checked={chosen.includes(one)}
          onChange={(checked) => {
            change(checked ? [...chosen, one] : chosen.filter((other) => other !== one));
          }}
        />
      ))}
    </fieldset>
  );
}
