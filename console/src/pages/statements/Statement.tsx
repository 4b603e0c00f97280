import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { statementQuery, statementSamplesQuery, type ShownStatement } from "@/api/statements";
import { Badge } from "@/components/Badge";
import { Chart } from "@/components/Chart";
import { Clip } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { DataTable, type Column } from "@/components/DataTable";
import { Bytes, Count, Duration, Facts, Stat, Stats, Time } from "@/components/Figures";
import { NavLink } from "@/components/NavLink";
import { EmptyState, ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { Page, Panel, Tabs } from "@/components/Page";
import { formatShort, plural } from "@/lib/format";
import { paths } from "@/lib/paths";
import { Actions } from "./Actions";

/** One statement: its state and the reason of it, its SQL, its figures, and what can be done with it. */
export function Statement() {
  const { name = "" } = useParams({ strict: false });
  const statement = useQuery(statementQuery(name));
  if (statement.isPending) return <Spinner />;
  if (statement.data === undefined)
    return (
      <Page title={name} from={{ label: "Statements", href: paths.statements() }}>
        <ErrorNotice error={statement.error} retry={() => void statement.refetch()} />
      </Page>
    );
  const facts = statement.data;
  return (
    <Page
      title={name}
      from={{ label: "Statements", href: paths.statements() }}
      beside={<Badge state={facts.state} title={facts.reason} />}
      about={<About statement={facts} />}
      actions={<Actions statement={facts} />}
    >
      {statement.isError && <ErrorNotice error={statement.error} />}
      <WhyNothing statement={facts} />
      <Figures statement={facts} />
      <Tabs
        label={`Parts of statement ${name}`}
        items={[
          { id: "sql", label: "SQL", panel: () => <CodeBlock label="SQL" text={facts.script} /> },
          { id: "charts", label: "Charts", panel: () => <Charts name={name} /> },
          { id: "progress", label: "Progress", panel: () => <Progress statement={facts} /> },
          { id: "events", label: "Events", count: facts.events.length, panel: () => <Events statement={facts} /> },
        ]}
      />
    </Page>
  );
}

function About({ statement }: { statement: ShownStatement }) {
  const pinned = statement.options.tables;
  const reads = Object.keys(pinned?.tables ?? {}).filter((topic) => topic !== pinned?.output?.topic);
  const writes = pinned?.output?.topic;
  return (
    <span className="row">
      {reads.length > 0 && <span>reads</span>}
      {reads.map((topic) => (
        <NavLink key={topic} href={paths.topic(topic)}>
          <Clip text={topic} />
        </NavLink>
      ))}
      {writes !== undefined && <span>{reads.length > 0 ? "and writes" : "writes"}</span>}
      {writes !== undefined && (
        <NavLink href={paths.topic(writes)}>
          <Clip text={writes} />
        </NavLink>
      )}
      <span className="faint">
        · {statement.state} <Time at={statement.since} />
      </span>
    </span>
  );
}

/** Why it stands still, or why nothing comes out though it runs. */
function WhyNothing({ statement }: { statement: ShownStatement }) {
  const { state, reason, waiting } = statement;
  if (state === "Failed")
    return (
      <Notice tone="bad" title="It has failed">
        <Clip text={reason} lines={8} />
      </Notice>
    );
  if (waiting !== null && waiting !== "")
    return (
      <Notice tone="info" title="Why nothing comes out">
        <Clip text={waiting} lines={6} />
      </Notice>
    );
  if (reason !== "")
    return (
      <Notice tone={state === "Pending" ? "info" : "warn"}>
        <Clip text={reason} lines={6} />
      </Notice>
    );
  return null;
}

function Figures({ statement }: { statement: ShownStatement }) {
  return (
    <Panel>
      <Stats>
        <Stat label="Rows in">
          <Count value={statement.rows_in} short />
        </Stat>
        <Stat label="Rows out">
          <Count value={statement.rows_out} short />
        </Stat>
        <Stat label="Lag" hint="Records that are still to be read">
          <Count value={statement.lag} short />
        </Stat>
        <Stat label="Late rows" hint="They came after the watermark had passed them, and were left out">
          <Count value={statement.late_rows} short />
        </Stat>
        <Stat label="Bad records">
          <Count value={statement.bad_rows} short />
        </Stat>
        <Stat label="State kept" hint={statement.state_rows === null ? "" : plural(statement.state_rows, "row")}>
          <Bytes value={statement.state_bytes} />
        </Stat>
        <Stat label="Last batch took">
          <Duration seconds={statement.batch_seconds} />
        </Stat>
      </Stats>
    </Panel>
  );
}

function Charts({ name }: { name: string }) {
  const samples = useQuery(statementSamplesQuery(name));
  if (samples.isPending) return <Spinner />;
  if (samples.data === undefined) return <ErrorNotice error={samples.error} retry={() => void samples.refetch()} />;
  const points = (pick: "rate" | "lag") => samples.data.map((sample) => [sample.at * 1000, sample.statements[name]?.[pick] ?? null] as const);
  if (samples.data.length < 2)
    return (
      <Panel>
        <EmptyState title="Gathering" icon="clock">
          Figures are taken every ten seconds; the first ones are drawn in a moment.
        </EmptyState>
      </Panel>
    );
  return (
    <div className="columns">
      <Panel title="Rows in per second">
        <Chart label="Rows in per second, the last hour" kind="area" series={[{ name: "Rows in per second", points: points("rate") }]} format={formatShort} />
      </Panel>
      <Panel title="Lag">
        <Chart label="Lag, the last hour" kind="area" series={[{ name: "Lag", points: points("lag") }]} format={formatShort} />
      </Panel>
    </div>
  );
}

interface Place {
  topic: string;
  partition: string;
  offset: number;
}

const PLACE_COLUMNS: readonly Column<Place>[] = [
  { id: "topic", header: "Topic", cell: (row) => <Clip text={row.topic} />, sort: (row) => row.topic },
  { id: "partition", header: "Partition", align: "right", cell: (row) => row.partition, sort: (row) => -Number(row.partition) },
  { id: "offset", header: "Next offset", align: "right", cell: (row) => <Count value={row.offset} />, sort: (row) => row.offset },
];

function Progress({ statement }: { statement: ShownStatement }) {
  const { detail, watermark, position } = statement;
  const places = Object.entries(position ?? {}).flatMap(([topic, offsets]) =>
    Object.entries(offsets).map(([partition, offset]) => ({ topic, partition, offset })),
  );
  const watermarks = Object.entries(detail.watermarks ?? {});
  return (
    <>
      <Panel title="Event time">
        <Facts
          items={[
            ["Watermark", watermark === null ? "none yet" : <Moment key="watermark" text={watermark} />],
            ...watermarks.map(([topic, at]) => [topic, at === null ? "none yet" : <Moment key={topic} text={at} />] as const),
            ["Batches", <Count key="batches" value={detail.batches ?? null} />],
          ]}
        />
      </Panel>
      {(detail.steps?.length ?? 0) > 0 && (
        <Panel title="Steps" about="It runs as several queries, joined by internal topics." flush>
          <DataTable label="Steps" param="step" rows={detail.steps ?? []} columns={STEP_COLUMNS} rowKey={(step) => String(step.step)} />
        </Panel>
      )}
      <Panel title="Position" flush>
        <DataTable
          label="Position"
          param="at"
          rows={places}
          columns={PLACE_COLUMNS}
          rowKey={(row) => `${row.topic} ${row.partition}`}
          sorted="topic"
          empty={<EmptyState title="Nothing has been read yet" icon="clock" />}
        />
      </Panel>
    </>
  );
}

type Step = NonNullable<ShownStatement["detail"]["steps"]>[number];

const STEP_COLUMNS: readonly Column<Step>[] = [
  { id: "step", header: "Step", cell: (row) => row.step },
  { id: "reads", header: "Reads", cell: (row) => <Clip text={row.reads.join(", ")} /> },
  { id: "lag", header: "Lag", align: "right", cell: (row) => <Count value={row.lag} /> },
  { id: "rows", header: "State rows", align: "right", cell: (row) => <Count value={row.state_rows} /> },
  { id: "bytes", header: "State kept", align: "right", cell: (row) => <Bytes value={row.state_bytes} /> },
  { id: "seconds", header: "Last batch", align: "right", cell: (row) => <Duration seconds={row.batch_seconds} /> },
];

/** A time as the API writes it. */
function Moment({ text }: { text: string }) {
  const at = Date.parse(text);
  return Number.isNaN(at) ? <Clip text={text} /> : <Time at={at / 1000} exact />;
}

type Event = ShownStatement["events"][number];

const EVENT_COLUMNS: readonly Column<Event>[] = [
  { id: "at", header: "When", width: "8rem", cell: (event) => <Time at={event.at} />, sort: (event) => event.at },
  { id: "kind", header: "What", cell: (event) => <Clip text={event.kind} />, search: (event) => event.kind },
  { id: "message", header: "Message", cell: (event) => <Clip text={event.message} lines={4} />, search: (event) => event.message },
];

function Events({ statement }: { statement: ShownStatement }) {
  return (
    <DataTable
      label="Events"
      param="e"
      rows={statement.events}
      columns={EVENT_COLUMNS}
      rowKey={(event) => String(event.id)}
      sorted="-at"
      empty={<EmptyState title="Nothing has happened yet" icon="activity" />}
    />
  );
}
