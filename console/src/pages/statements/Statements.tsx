import { useStatus } from "@/api/status";
import type { Statement } from "@/api/model";
import { Badge } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Bytes, Count, Time } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page } from "@/components/Page";
import { paths } from "@/lib/paths";

/** All statements that one may see, live. */
export function Statements() {
  const status = useStatus();
  return (
    <Page title="Statements" about="SQL that runs on and on: topics in, clean topics out.">
      {status.isError && <ErrorNotice error={status.error} retry={() => void status.refetch()} />}
      {status.isPending ? (
        <Spinner />
      ) : (
        <DataTable
          label="Statements"
          rows={status.data?.statements ?? []}
          columns={COLUMNS}
          rowKey={(statement) => statement.name}
          href={(statement) => paths.statement(statement.name)}
          sorted="name"
          searchLabel="Search statements"
          empty={
            <EmptyState
              title="No statement yet"
              icon="statements"
              command={["headgate sql -f statements.sql", "headgate demo hotels"]}
            >
              A statement makes a clean topic of others: duplicates out, streams joined, personal data masked. Write one into a file, or
              run a world that has some.
            </EmptyState>
          }
        />
      )}
    </Page>
  );
}

const COLUMNS: readonly Column<Statement>[] = [
  {
    id: "name",
    header: "Statement",
    cell: (statement) => <Clip text={statement.name} />,
    sort: (statement) => statement.name,
    search: (statement) => statement.name,
  },
  {
    id: "state",
    header: "State",
    cell: (statement) => <Badge state={statement.state} title={statement.reason} />,
    sort: (statement) => statement.state,
    search: (statement) => `${statement.state} ${statement.reason}`,
  },
  {
    id: "in",
    header: "Rows in",
    align: "right",
    cell: (statement) => <Count value={statement.rows_in} short />,
    sort: (statement) => statement.rows_in,
  },
  {
    id: "out",
    header: "Rows out",
    align: "right",
    cell: (statement) => <Count value={statement.rows_out} short />,
    sort: (statement) => statement.rows_out,
  },
  {
    id: "late",
    header: "Late",
    align: "right",
    cell: (statement) => <Count value={statement.late_rows} short />,
    sort: (statement) => statement.late_rows,
    wideOnly: true,
  },
  {
    id: "lag",
    header: "Lag",
    align: "right",
    cell: (statement) => <Count value={statement.lag} short />,
    sort: (statement) => statement.lag,
  },
  {
    id: "state-bytes",
    header: "State kept",
    align: "right",
    cell: (statement) => <Bytes value={statement.state_bytes} />,
    sort: (statement) => statement.state_bytes,
    wideOnly: true,
  },
  {
    id: "since",
    header: "Since",
    align: "right",
    cell: (statement) => <Time at={statement.since} />,
    sort: (statement) => statement.since,
    wideOnly: true,
  },
];
