import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "@/api/model";
import { askLake, type Row } from "@/api/lake";
import { useCan } from "@/api/session";
import { requests, useRequest, type ShownTable } from "@/api/tables";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip, visible } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { DataTable, type Column } from "@/components/DataTable";
import { Dialog } from "@/components/Dialog";
import { Facts, Time } from "@/components/Figures";
import { CheckField } from "@/components/Form";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { formatBytes, formatCount, NONE, plural } from "@/lib/format";
import { shellWord } from "@/lib/quote";
import { useSearchParam } from "@/lib/search";
import { deadLettersSql, payloadOf, timeOf } from "../figures";

interface Letter {
  id: string;
  partition: string;
  offset: string;
  timestamp: number | null;
  schemaId: string | null;
  errorClass: string;
  message: string;
  failedAt: number | null;
  key: string | null;
  value: string | null;
  valueBytes: number;
  headers: unknown;
  replayId: string | null;
  replayedAt: number | null;
}

const text = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value));
const maybe = (value: unknown): string | null => (value === null || value === undefined ? null : text(value));

function letterOf(row: Row): Letter {
  return {
    id: `${text(row.partition)}:${text(row.offset)}:${text(row.failed_at)}`,
    partition: text(row.partition),
    offset: text(row.offset),
    timestamp: timeOf(row.timestamp),
    schemaId: maybe(row.schema_id),
    errorClass: text(row.error_class),
    message: text(row.error_message),
    failedAt: timeOf(row.failed_at),
    key: maybe(row.key_hex),
    value: maybe(row.value_hex),
    valueBytes: Number(row.value_bytes ?? 0),
    headers: row.headers,
    replayId: maybe(row.replay_id),
    replayedAt: timeOf(row.replayed_at),
  };
}

const MOST = 200;

const COLUMNS: readonly Column<Letter>[] = [
  {
    id: "place",
    header: "Partition : offset",
    cell: (one) => <span className="mono">{`${one.partition} : ${one.offset}`}</span>,
    search: (one) => `${one.partition}:${one.offset} ${one.errorClass} ${one.message}`,
  },
  { id: "error", header: "Error", cell: (one) => <strong>{one.errorClass}</strong>, sort: (one) => one.errorClass },
  { id: "message", header: "What is wrong", cell: (one) => <Clip text={one.message} lines={2} /> },
  { id: "state", header: "State", cell: (one) => <LetterState letter={one} /> },
  { id: "size", header: "Value", align: "right", wideOnly: true, cell: (one) => (one.value === null ? <span className="nothing">none</span> : formatBytes(one.valueBytes)) },
  { id: "failed", header: "Found", align: "right", cell: (one) => <Time at={one.failedAt} />, sort: (one) => one.failedAt },
];

function LetterState({ letter }: { letter: Letter }) {
  if (letter.replayId?.startsWith("kept-out") === true) return <Badge state="kept out" tone="idle" title="A rollback keeps it out of the table" />;
  return letter.replayedAt === null ? <Badge state="dead" tone="warn" /> : <Badge state="replayed" tone="good" />;
}

type Replayed = Schemas["ReplayedAnswer"];

/** Records that are not in the table: what they are, why, and the way back. */
export function DeadLetters({ table, cluster }: { table: ShownTable; cluster: string }) {
  const { topic, dead_letters: place } = table;
  if (place === null)
    return (
      <EmptyState title="This table keeps no dead letters" icon="info" command={`headgate table alter ${shellWord(topic)} --on-error log`}>
        {table.spec.on_error === "skip"
          ? "A record that cannot be decoded is left out, and counted."
          : "A record that cannot be decoded suspends it. With the error policy log it is kept, raw, and can be replayed."}
      </EmptyState>
    );
  if (!place.exists || cluster === "")
    return (
      <EmptyState title="No dead letters" icon="check">
        Every record so far could be decoded. One that cannot goes to <bdi className="mono">{place.name}</bdi>, and can be replayed from there.
      </EmptyState>
    );
  return <Letters table={table} cluster={cluster} name={place.name} />;
}

function Letters({ table, cluster, name }: { table: ShownTable; cluster: string; name: string }) {
  const { topic } = table;
  const can = useCan();
  const [all, setAll] = useSearchParam("replayed");
  const [chosen, setChosen] = useState<Letter>();
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ["table", topic, "dead letters", all, table.dead_letters_count],
    queryFn: async ({ signal }) => (await askLake(deadLettersSql(cluster, name, topic, all !== "", MOST), signal)).map(letterOf),
    retry: false,
    // Each answer is a query: it is asked for again when their number changes, or by hand.
    staleTime: Infinity,
  });
  const replay = useRequest<Replayed>(topic, {
    ask: () => requests.replay(topic),
    done: (found) => `${plural(found.replayed, "record")} replayed, ${formatCount(found.dead)} still dead.`,
    then: () => void refetch(),
  });
  const suspended = table.desired === "suspended";
  return (
    <>
      <Panel
        title="Dead letters"
        about={
          <>
            <span>{plural(table.dead_letters_count ?? 0, "record")} that no replay has taken up, in </span>
            <bdi className="mono">{name}</bdi>
          </>
        }
        flush
        actions={
          <>
            <Button small icon="refresh" busy={isFetching} onClick={() => void refetch()}>
              Look again
            </Button>
            {can("writer", topic) && (
              <Button
                small
                kind="primary"
                icon="play"
                busy={replay.isPending}
                disabled={suspended || table.dead_letters_count === 0}
                title={suspended ? "The table is suspended and takes no rows" : undefined}
                onClick={() => {
                  replay.mutate();
                }}
              >
                Replay all
              </Button>
            )}
          </>
        }
      >
        {error !== null ? (
          <div className="panel-body">
            <ErrorNotice error={error} retry={() => void refetch()} />
          </div>
        ) : data === undefined ? (
          <Spinner label="Asking for dead letters" />
        ) : (
          <DataTable
            label="Dead letters"
            rows={data}
            columns={COLUMNS}
            rowKey={(one) => one.id}
            onOpen={setChosen}
            searchLabel="Search dead letters"
            param="letters"
            tools={
              <CheckField
                label="Replayed ones too"
                checked={all !== ""}
                onChange={(checked) => {
                  setAll(checked ? "yes" : "");
                }}
              />
            }
            empty={
              <EmptyState title="No dead letters" icon="check">
                Every record could be decoded, or was replayed.
              </EmptyState>
            }
          />
        )}
      </Panel>
      <Dialog
        title="Dead letter"
        wide
        open={chosen !== undefined}
        onClose={() => {
          setChosen(undefined);
        }}
      >
        {chosen !== undefined && <LetterDetail letter={chosen} />}
      </Dialog>
    </>
  );
}

function LetterDetail({ letter }: { letter: Letter }) {
  return (
    <div className="dialog-body">
      <Facts
        items={[
          ["Partition and offset", <span key="place" className="mono">{`${letter.partition} : ${letter.offset}`}</span>],
          ["Record of", <Time key="time" at={letter.timestamp} exact />],
          ["Why", <span key="why"><strong>{letter.errorClass}</strong>: <bdi>{letter.message}</bdi></span>],
          ["Schema id", letter.schemaId ?? NONE],
          ["Found", <Time key="failed" at={letter.failedAt} exact />],
          ["State", <LetterState key="state" letter={letter} />],
          ...(letter.replayedAt === null ? [] : ([["Replayed", <Time key="replayed" at={letter.replayedAt} exact />]] as const)),
        ]}
      />
      <PayloadPart label="Value" digits={letter.value} bytes={letter.valueBytes} />
      <PayloadPart label="Key" digits={letter.key} />
      {Array.isArray(letter.headers) && letter.headers.length > 0 && <CodeBlock label="Headers" text={visible(JSON.stringify(letter.headers, null, 2))} />}
    </div>
  );
}

function PayloadPart({ label, digits, bytes }: { label: string; digits: string | null; bytes?: number }) {
  if (digits === null) return <p className="faint">{label}: none.</p>;
  const payload = payloadOf(digits, bytes);
  const schema = payload.schemaId === null ? "" : `, behind schema id ${payload.schemaId}`;
  return (
    <div className="stack">
      <CodeBlock label={`${label}, ${plural(payload.bytes, "byte")} as hexadecimal`} text={payload.hex} />
      <CodeBlock label={`${label} as text${schema}`} text={visible(payload.text)} />
    </div>
  );
}
