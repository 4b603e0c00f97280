import { useMemo } from "react";
import { useSamples } from "@/api/status";
import type { ShownTable } from "@/api/tables";
import { Chart } from "@/components/Chart";
import { Clip } from "@/components/Clip";
import { CopyButton } from "@/components/CopyButton";
import { Bytes, Count, Duration, Facts, Stat, Stats, Time } from "@/components/Figures";
import { NavLink } from "@/components/NavLink";
import { Panel } from "@/components/Page";
import { formatDuration, formatShort, NONE, plural } from "@/lib/format";
import { paths } from "@/lib/paths";
import { offsetsText } from "../figures";
import { Freshness } from "./Freshness";

/** The panel of figures, the last hour, and what is known of the table. */
export function Overview({ table }: { table: ShownTable }) {
  return (
    <>
      <Panel title="Figures" about={<>As of <Time at={table.updated_at} /></>}>
        <Stats>
          <Stat label="Records materialized" hint="All that it has taken in since it was enabled">
            <Count value={table.records_materialized} short />
          </Stat>
          <Stat label="Rows">
            <Count value={table.rows} short />
          </Stat>
          <Stat label="Data files">
            <Count value={table.files} short />
          </Stat>
          <Stat label="Last compaction">
            <Time at={table.last_compaction_at === null ? null : table.last_compaction_at / 1000} />
          </Stat>
          <Stat label="Storage used" hint="By the newest snapshot; all snapshots that are kept take more">
            <Bytes value={table.bytes} />
          </Stat>
          <Stat label="Lag" hint="Offsets that are not in the table yet">
            <Count value={table.lag} short />
          </Stat>
          <Stat label="Freshness" hint="How long the oldest record has been waiting">
            <Freshness seconds={table.freshness} />
          </Stat>
        </Stats>
      </Panel>
      <LastHour topic={table.topic} />
      <div className="columns">
        <About table={table} />
        <Events table={table} />
      </div>
    </>
  );
}

function LastHour({ topic }: { topic: string }) {
  const samples = useSamples().data;
  const series = useMemo(() => {
    const points = (of: "rate" | "lag" | "freshness"): [number, number | null][] =>
      (samples ?? []).map((sample) => [sample.at * 1000, sample.tables[topic]?.[of] ?? null]);
    return { rate: points("rate"), lag: points("lag"), freshness: points("freshness") };
  }, [samples, topic]);
  if ((samples?.length ?? 0) < 2) return null;
  return (
    <div className="columns">
      <Panel title="Rows per second">
        <Chart label="Rows per second, last hour" kind="area" series={[{ name: "Rows per second", points: series.rate }]} format={formatShort} height={150} />
      </Panel>
      <Panel title="Lag">
        <Chart label="Lag, last hour" kind="area" series={[{ name: "Lag", points: series.lag }]} format={formatShort} height={150} />
      </Panel>
      <Panel title="Freshness">
        <Chart label="Freshness, last hour" kind="area" series={[{ name: "Freshness", points: series.freshness }]} format={formatDuration} height={150} />
      </Panel>
    </div>
  );
}

function About({ table }: { table: ShownTable }) {
  const { detail, spec, topic } = table;
  const batch = detail.last_batch;
  return (
    <Panel title="About">
      <Facts
        items={[
          [
            "Topic",
            <NavLink key="topic" href={paths.topic(topic)}>
              <Clip text={topic} />
            </NavLink>,
          ],
          [
            "Location",
            detail.location === undefined ? (
              NONE
            ) : (
              <span key="location" className="table-location">
                <Clip text={detail.location} mono />
                <CopyButton text={detail.location} what="the location" />
              </span>
            ),
          ],
          ["Rows", MODES[detail.mode ?? spec.mode]],
          ...(detail.key === undefined || detail.key.length === 0 ? [] : ([["Key", <Clip key="key" text={detail.key.join(", ")} mono />]] as const)),
          ["Partitions", <Clip key="partition" text={detail.partition === undefined ? NONE : detail.partition.length > 0 ? detail.partition.join(", ") : "none"} mono />],
          ["Format version", detail.format_version ?? NONE],
          ["Started from", <Clip key="from" text={table.from} />],
          ["Enabled", <Time key="created" at={table.created_at} />],
          ["Last batch", batch === undefined ? NONE : <span key="batch">{plural(batch.rows, "row")} in {formatDuration(batch.seconds)}, <Time at={batch.at} /></span>],
          ["Kept by all snapshots", <Bytes key="kept" value={table.kept_bytes} />],
          ...(table.delta_log_bytes === null ? [] : ([["Delta log", <Bytes key="delta" value={table.delta_log_bytes} />]] as const)),
          ...(detail.deleted_rows === undefined || detail.deleted_rows === 0 ? [] : ([["Deleted rows in files", <Count key="deleted" value={detail.deleted_rows} />]] as const)),
          ...(detail.index_bytes === undefined ? [] : ([["Key index", <Bytes key="index" value={detail.index_bytes} />]] as const)),
          ["Wanted freshness", <Duration key="freshness" seconds={spec.freshness_seconds} />],
          ["Position", <Clip key="position" text={offsetsText(table.position?.offsets) || NONE} mono lines={2} />],
        ]}
      />
    </Panel>
  );
}

const MODES: Record<string, string> = {
  append: "Append: each record is a row",
  upsert: "Upsert: the last record of a key is its row",
  scd2: "Every version of a key's row",
  auto: "Not known before the engine takes it up",
};

function Events({ table }: { table: ShownTable }) {
  return (
    <Panel title="Latest events">
      {table.events.length === 0 ? (
        <p className="faint">Nothing yet.</p>
      ) : (
        <ol className="event-list">
          {table.events.slice(0, 12).map((event) => (
            <li key={event.id}>
              <span className="faint small">
                <Time at={event.at} />
              </span>
              <div>
                <strong>{event.kind}</strong>
                {event.message !== "" && (
                  <div className="faint small">
                    <Clip text={event.message.replaceAll("_", " ")} lines={3} />
                  </div>
                )}
              </div>
            </li>
          ))}
        </ol>
      )}
      {table.events.length > 12 && <NavLink href={paths.activity({ subject: table.topic })}>All events</NavLink>}
    </Panel>
  );
}
