import { useQuery } from "@tanstack/react-query";
import { exportsQuery, type ListedExport } from "@/api/exports";
import { useCan } from "@/api/session";
import { Badge } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Count, Time } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page } from "@/components/Page";
import { paths } from "@/lib/paths";
import { AdminsOnly } from "@/shell/AdminsOnly";
import { NextRun } from "./NextRun";
import { secondsOf } from "./times";
import "./exports.css";

/** Files of rows that are made by schedule. */
export function Exports() {
  const can = useCan();
  if (!can("admin")) return <AdminsOnly title="Exports" what="Exports take data out of the lake: they" />;
  return (
    <Page title="Exports" about="The rows of a query as a file, by schedule, and a mail when it is there.">
      <List />
    </Page>
  );
}

function List() {
  const exports = useQuery(exportsQuery);
  if (exports.data === undefined)
    return exports.error === null ? <Spinner /> : <ErrorNotice error={exports.error} retry={() => void exports.refetch()} />;
  return (
    <DataTable
      label="Exports"
      rows={exports.data}
      columns={columns}
      rowKey={(one) => one.name}
      href={(one) => paths.export(one.name)}
      sorted="name"
      {...(exports.data.length > 8 ? { searchLabel: "Search exports" } : {})}
      empty={
        <EmptyState
          icon="exports"
          title="No exports yet"
          command={'headgate export create sales-week --period week --sql "SELECT * FROM sales WHERE at >= :from AND at < :to"'}
        >
          The past week as a masked CSV every Monday, say. What an export does is written down with it, also in a file for{" "}
          <code>headgate apply</code>.
        </EmptyState>
      }
    />
  );
}

const columns: readonly Column<ListedExport>[] = [
  {
    id: "name",
    header: "Name",
    cell: (one) => <Clip text={one.name} />,
    sort: (one) => one.name,
    search: (one) => one.name,
  },
  {
    id: "state",
    header: "State",
    cell: (one) => <Badge state={one.state === "paused" ? "Paused" : "Active"} />,
    sort: (one) => one.state,
    search: (one) => one.state,
  },
  {
    id: "next",
    header: "Next run",
    cell: (one) => <NextRun next={one.next} />,
    sort: (one) => secondsOf(one.next),
  },
  {
    id: "schedule",
    header: "Schedule",
    cell: (one) => (
      <span title={one.zone}>
        <Clip text={one.schedule} mono />
      </span>
    ),
    search: (one) => `${one.schedule} ${one.zone}`,
    wideOnly: true,
  },
  {
    id: "last",
    header: "Last run",
    cell: (one) =>
      one.last_run === null ? (
        <span className="nothing">none yet</span>
      ) : (
        <span className="row">
          <Badge state={one.last_run.state} title={one.last_run.reason} />
          <Time at={one.last_run.ended_at ?? one.last_run.created_at} />
        </span>
      ),
    sort: (one) => one.last_run?.created_at,
  },
  {
    id: "rows",
    header: "Rows",
    cell: (one) => <Count value={one.last_run?.rows} />,
    sort: (one) => one.last_run?.rows,
    align: "right",
  },
];
