import { useMemo, useState } from "react";
import { useAsk, type AskedRow } from "@/api/ask";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Command } from "@/components/CodeBlock";
import { DataTable, type Column } from "@/components/DataTable";
import { TextField } from "@/components/Form";
import { EmptyState, ErrorNotice, Progress } from "@/components/Notices";
import { NONE, plural } from "@/lib/format";
import { useSearchParam } from "@/lib/search";

const MOST = 100;

/** Rows of a topic for which a condition in SQL holds: the first hundred. */
export function Condition({ name }: { name: string }) {
  const [condition, setCondition] = useSearchParam("where");
  const [text, setText] = useState(condition);
  const sql = condition === "" ? "" : conditionSql(name, condition);
  const asking = useAsk(sql);
  const columns = useMemo(
    () => (asking.columns ?? []).map(({ name: column, type }): Column<Numbered> => ({
      id: column,
      header: column,
      cell: ({ row }) => <Cell value={row[column]} />,
      ...(/^(BIGINT|INT|SMALLINT|TINYINT|DOUBLE|FLOAT|DECIMAL)/.test(type) ? { align: "right" as const } : {}),
    })),
    [asking.columns],
  );
  const rows = useMemo(() => asking.rows.map((row, index) => ({ row, index })), [asking.rows]);
  return (
    <div>
      <form
        className="condition"
        onSubmit={(event) => {
          event.preventDefault();
          setCondition(text.trim());
        }}
      >
        <TextField label="WHERE" value={text} onChange={setText} placeholder="total > 100 AND channel = 'WEB'" className="mono" />
        <Button type="submit" kind="primary" disabled={text.trim() === "" || text.trim() === condition}>
          Find
        </Button>
      </form>
      {asking.error !== null && <ErrorNotice error={asking.error} />}
      {sql === "" && (
        <EmptyState title="Find rows by a condition" icon="filter">
          A condition in SQL on the columns of the topic’s schema. The first {MOST} rows that fit are shown.
        </EmptyState>
      )}
      {sql !== "" && !asking.isDone && (
        <div className="condition-progress">
          <Progress label={asking.rows.length === 0 ? "Looking through the topic" : `${plural(asking.rows.length, "row")} so far`} />
        </div>
      )}
      {rows.length > 0 && (
        <div className="condition-rows">
          <DataTable label="Rows" param="r" rows={rows} columns={columns} rowKey={({ index }) => String(index)} />
        </div>
      )}
      {asking.isDone && asking.error === null && rows.length === 0 && <EmptyState title="No row fits" icon="filter" />}
      {sql !== "" && (
        <p className="condition-command">
          <Command text={`headgate query ${shellQuoted(sql)}`} />
        </p>
      )}
    </div>
  );
}

interface Numbered {
  row: AskedRow;
  index: number;
}

function Cell({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span className="nothing">{NONE}</span>;
  return <Clip mono text={typeof value === "string" ? value : JSON.stringify(value)} />;
}

/** The condition stands in brackets of its own line, so that a comment in it ends there. */
export function conditionSql(topic: string, condition: string): string {
  return `SELECT * FROM \`${topic.replaceAll("`", "``")}\` WHERE (\n${condition}\n) LIMIT ${MOST}`;
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("\n", " ").replaceAll("'", `'\\''`)}'`;
}
