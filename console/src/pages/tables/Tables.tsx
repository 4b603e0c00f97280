import { useMemo } from "react";
import { useSession } from "@/api/session";
import type { Table } from "@/api/model";
import { useStatus } from "@/api/status";
import { Badge } from "@/components/Badge";
import { ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Bytes, Count, Time } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page } from "@/components/Page";
import { paths } from "@/lib/paths";
import { useSearchParam } from "@/lib/search";
import { Freshness } from "./parts/Freshness";
import { mayEnable } from "./rights";
import { needsAttention, rankOf, stateCounts } from "./states";
import "./tables.css";

const COLUMNS: readonly Column<Table>[] = [
  {
    id: "topic",
    header: "Table",
    cell: (table) => <Clip text={table.topic} />,
    sort: (table) => table.topic,
    search: (table) => `${table.topic} ${table.state} ${table.reason}`,
  },
  {
    id: "state",
    header: "State",
    cell: (table) => <StateCell table={table} />,
    sort: (table) => `${rankOf(table.state)} ${table.topic}`,
  },
  { id: "rows", header: "Rows", align: "right", cell: (table) => <Count value={table.rows} short />, sort: (table) => table.rows },
  { id: "lag", header: "Lag", align: "right", cell: (table) => <Count value={table.lag} short />, sort: (table) => table.lag },
  {
    id: "freshness",
    header: "Freshness",
    align: "right",
    cell: (table) => <Freshness seconds={table.freshness} />,
    sort: (table) => table.freshness,
  },
  {
    id: "dead",
    header: "Dead letters",
    align: "right",
    wideOnly: true,
    cell: (table) => <Count value={table.dead_letters_count} short />,
    sort: (table) => table.dead_letters_count,
  },
  { id: "files", header: "Files", align: "right", cell: (table) => <Count value={table.files} short />, sort: (table) => table.files },
  { id: "bytes", header: "Size", align: "right", cell: (table) => <Bytes value={table.bytes} />, sort: (table) => table.bytes },
  {
    id: "compacted",
    header: "Last compaction",
    align: "right",
    wideOnly: true,
    cell: (table) => <Time at={seconds(table.last_compaction_at)} />,
    sort: (table) => table.last_compaction_at,
  },
];

/** All tables, those that need somebody first. */
export function Tables() {
  const { data, error, refetch } = useStatus();
  const session = useSession();
  const [filter, setFilter] = useSearchParam("state");
  const tables = useMemo(() => data?.tables ?? [], [data]);
  const shown = useMemo(() => tables.filter((table) => isIn(filter, table)), [filter, tables]);
  const enables = mayEnable(session ?? null);
  return (
    <Page
      title="Tables"
      about="Topics as tables: each record is a row seconds later, exactly once."
      actions={
        enables && (
          <ButtonLink kind="primary" icon="plus" href={paths.enableTable()}>
            Enable a topic
          </ButtonLink>
        )
      }
    >
      {error !== null && <ErrorNotice error={error} retry={() => void refetch()} />}
      {data === undefined ? (
        error === null && <Spinner />
      ) : (
        <DataTable
          label="Tables"
          rows={shown}
          columns={COLUMNS}
          rowKey={(table) => table.topic}
          href={(table) => paths.table(table.topic)}
          sorted="state"
          searchLabel="Search tables"
          tools={tables.length > 0 ? <Filter tables={tables} value={filter} onChange={setFilter} /> : undefined}
          empty={
            tables.length > 0 ? (
              <p className="no-match">No table is in this state.</p>
            ) : (
              <EmptyState
                title="No table yet"
                icon="tables"
                command="headgate table enable TOPIC"
                action={
                  enables && (
                    <ButtonLink kind="primary" icon="plus" href={paths.enableTable()}>
                      Enable a topic
                    </ButtonLink>
                  )
                }
              >
                Switch a topic on, and it is an Iceberg or Delta table that any engine can read, seconds after each record.
              </EmptyState>
            )
          }
        />
      )}
    </Page>
  );
}

const ATTENTION = "attention";

function isIn(filter: string, table: Table): boolean {
  if (filter === "") return true;
  return filter === ATTENTION ? needsAttention(table) : table.state.toLowerCase() === filter;
}

interface FilterProps {
  tables: readonly Table[];
  value: string;
  onChange: (value: string) => void;
}

/** States that there are, each with how many tables are in it. */
function Filter({ tables, value, onChange }: FilterProps) {
  const attention = tables.filter(needsAttention).length;
  const choices: [string, string, number][] = [["", "All", tables.length]];
  if (attention > 0 || value === ATTENTION) choices.push([ATTENTION, "Needs attention", attention]);
  for (const [state, count] of stateCounts(tables)) choices.push([state.toLowerCase(), state, count]);
  return (
    <div className="tables-filter" role="group" aria-label="Filter by state">
      {choices.map(([id, label, count]) => (
        <button
          key={id}
          type="button"
          aria-pressed={value === id}
          onClick={() => {
            onChange(id);
          }}
        >
          {label} <span className="number">{count}</span>
        </button>
      ))}
    </div>
  );
}

function StateCell({ table }: { table: Table }) {
  return (
    <div className="tables-state">
      <Badge state={table.state} title={table.reason} />
      {needsAttention(table) && table.reason !== "" && (
        <span className="faint small">
          <Clip text={table.reason} lines={2} />
        </span>
      )}
    </div>
  );
}

function seconds(milliseconds: number | null): number | null {
  return milliseconds === null ? null : milliseconds / 1000;
}
