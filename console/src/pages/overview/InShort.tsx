import type { Statement, Table } from "@/api/model";
import { Badge } from "@/components/Badge";
import { ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Count, Duration } from "@/components/Figures";
import { EmptyState } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";

const MOST = 8;

/** Tables and statements in short: those with the largest lag first. */
export function InShort({ tables, statements }: { tables: readonly Table[]; statements: readonly Statement[] }) {
  return (
    <div className="overview-short">
      <Panel
        title={`Tables · ${tables.length}`}
        flush
        actions={
          <ButtonLink small href={paths.tables()}>
            All tables
          </ButtonLink>
        }
      >
        <DataTable
          label="Tables"
          param="t"
          rows={busiest(tables)}
          columns={TABLE_COLUMNS}
          rowKey={(table) => table.topic}
          href={(table) => paths.table(table.topic)}
          empty={
            <EmptyState title="No table yet" icon="tables" action={<ButtonLink href={paths.enableTable()}>Enable a topic as table</ButtonLink>} />
          }
        />
      </Panel>
      <Panel
        title={`Statements · ${statements.length}`}
        flush
        actions={
          <ButtonLink small href={paths.statements()}>
            All statements
          </ButtonLink>
        }
      >
        <DataTable
          label="Statements"
          param="s"
          rows={busiest(statements)}
          columns={STATEMENT_COLUMNS}
          rowKey={(statement) => statement.name}
          href={(statement) => paths.statement(statement.name)}
          empty={
            <EmptyState title="No statement yet" icon="statements" command="headgate sql -f statements.sql">
              A statement makes a clean topic of others: without duplicates, joined, masked.
            </EmptyState>
          }
        />
      </Panel>
    </div>
  );
}

function busiest<Item extends { lag: number | null }>(items: readonly Item[]): readonly Item[] {
  return [...items].sort((a, b) => (b.lag ?? 0) - (a.lag ?? 0)).slice(0, MOST);
}

const TABLE_COLUMNS: readonly Column<Table>[] = [
  { id: "topic", header: "Table", cell: (table) => <Clip text={table.topic} /> },
  { id: "state", header: "State", cell: (table) => <Badge state={table.state} title={table.reason} /> },
  { id: "rows", header: "Rows", align: "right", cell: (table) => <Count value={table.rows} short /> },
  { id: "lag", header: "Lag", align: "right", cell: (table) => <Count value={table.lag} short /> },
  { id: "freshness", header: "Fresh", align: "right", cell: (table) => <Duration seconds={table.freshness} /> },
];

const STATEMENT_COLUMNS: readonly Column<Statement>[] = [
  { id: "name", header: "Statement", cell: (statement) => <Clip text={statement.name} /> },
  { id: "state", header: "State", cell: (statement) => <Badge state={statement.state} title={statement.reason} /> },
  { id: "in", header: "Rows in", align: "right", cell: (statement) => <Count value={statement.rows_in} short /> },
  { id: "out", header: "Rows out", align: "right", cell: (statement) => <Count value={statement.rows_out} short /> },
  { id: "lag", header: "Lag", align: "right", cell: (statement) => <Count value={statement.lag} short /> },
];
