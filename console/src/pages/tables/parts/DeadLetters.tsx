import { useMemo, useState } from "react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Schemas } from "@/api/model";
import { askLake } from "@/api/lake";
import { useCan } from "@/api/session";
import { deadLettersQuery, requests, useRequest, type DeadLetter, type Payload, type ShownTable } from "@/api/tables";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip, visible } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { DataTable, type Column } from "@/components/DataTable";
import { Dialog } from "@/components/Dialog";
import { Facts, Time } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { formatBytes, formatCount, NONE, plural } from "@/lib/format";
import { shellWord } from "@/lib/quote";
import { contentText, hexDump, takenUpSql, timeOf } from "../figures";

type Standing = "dead" | "replayed" | "kept out" | "unknown";

interface Letter extends DeadLetter {
  id: string;
  standing: Standing;
}

const COLUMNS: readonly Column<Letter>[] = [
  {
    id: "place",
    header: "Partition : offset",
    cell: (one) => <span className="mono">{`${one.partition} : ${one.offset}`}</span>,
    search: (one) => `${one.partition}:${one.offset} ${one.error_class} ${one.error_message} ${one.standing}`,
  },
  { id: "error", header: "Error", cell: (one) => <strong>{one.error_class}</strong>, sort: (one) => one.error_class },
  { id: "message", header: "What is wrong", cell: (one) => <Clip text={one.error_message} lines={2} /> },
  { id: "state", header: "State", cell: (one) => <StandingBadge standing={one.standing} />, sort: (one) => one.standing },
  {
    id: "size",
    header: "Value",
    align: "right",
    wideOnly: true,
    cell: (one) => (one.value === null ? <span className="nothing">none</span> : formatBytes(one.value.bytes)),
  },
  { id: "failed", header: "Found", align: "right", cell: (one) => <Time at={timeOf(one.failed_at)} />, sort: (one) => timeOf(one.failed_at) },
];

const TONES = { dead: "warn", replayed: "good", "kept out": "idle" } as const;

function StandingBadge({ standing }: { standing: Standing }) {
  if (standing === "unknown") return <span className="nothing">{NONE}</span>;
  return <Badge state={standing} tone={TONES[standing]} title={standing === "kept out" ? "A rollback keeps it out of the table" : undefined} />;
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
  return <Letters table={table} cluster={cluster} name={place.name} exists={place.exists} />;
}

const MOST_TAKEN_UP = 10_000;

/** Which letters a replay has taken up, by partition and offset: asked only where some have been. */
function useTakenUp(table: ShownTable, cluster: string, name: string, enabled: boolean) {
  const { topic } = table;
  return useQuery({
    queryKey: ["table", topic, "taken up", table.dead_letters_count],
    queryFn: async ({ signal }) => {
      const rows = await askLake(takenUpSql(cluster, name, topic, MOST_TAKEN_UP), signal);
      return new Map<string, Standing>(
        rows.map((row) => [`${String(row.partition)}:${String(row.offset)}`, String(row.replay_id).startsWith("kept-out") ? "kept out" : "replayed"]),
      );
    },
    enabled: enabled && cluster !== "",
    retry: false,
    staleTime: Infinity,
  });
}

interface LettersProps {
  table: ShownTable;
  cluster: string;
  name: string;
  /** Whether there is a table of them yet. */
  exists: boolean;
}

function Letters({ table, cluster, name, exists }: LettersProps) {
  const { topic, dead_letters_count: dead } = table;
  const can = useCan();
  const [chosen, setChosen] = useState<string>();
  const { data, error, refetch, isFetching, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({ ...deadLettersQuery(topic), retry: false });
  const found = useMemo(() => data?.pages.flatMap((page) => page.dead_letters) ?? [], [data]);
  const allDead = dead !== null && !hasNextPage && found.length === dead;
  const takenUp = useTakenUp(table, cluster, name, exists && data !== undefined && !allDead && found.length > 0).data;
  const letters = useMemo<readonly Letter[]>(() => {
    const standing = (id: string): Standing => (allDead ? "dead" : takenUp === undefined ? "unknown" : (takenUp.get(id) ?? "dead"));
    return found.map((one) => {
      const id = `${one.partition}:${one.offset}`;
      return { ...one, id, standing: standing(id) };
    });
  }, [found, takenUp, allDead]);
  const replay = useRequest<Replayed>(topic, {
    ask: () => requests.replay(topic),
    done: (result) => `${plural(result.replayed, "record")} replayed, ${formatCount(result.dead)} still dead.`,
  });
  const suspended = table.desired === "suspended";
  const shown = letters.find((one) => one.id === chosen);
  return (
    <>
      <Panel
        title="Dead letters"
        about={
          <>
            {plural(dead ?? 0, "record")} that no replay has taken up, in <bdi className="mono">{name}</bdi>
          </>
        }
        flush
        actions={
          <>
            <Button small icon="refresh" busy={isFetching && !isFetchingNextPage} onClick={() => void refetch()}>
              Look again
            </Button>
            {can("writer", topic) && (
              <Button
                small
                kind="primary"
                icon="play"
                busy={replay.isPending}
                disabled={suspended || dead === 0}
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
          <Spinner label="Reading dead letters" />
        ) : (
          <DataTable
            label="Dead letters"
            rows={letters}
            columns={COLUMNS}
            rowKey={(one) => one.id}
            onOpen={(one) => {
              setChosen(one.id);
            }}
            searchLabel="Search dead letters"
            param="letters"
            empty={
              <EmptyState title="No dead letters" icon="check">
                Every record so far could be decoded. One that cannot comes here, and can be replayed.
              </EmptyState>
            }
          />
        )}
      </Panel>
      {hasNextPage && (
        <div className="row">
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show older ones
          </Button>
        </div>
      )}
      <Dialog
        title="Dead letter"
        wide
        open={shown !== undefined}
        onClose={() => {
          setChosen(undefined);
        }}
      >
        {shown !== undefined && <LetterDetail letter={shown} />}
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
          ["Record of", <Time key="time" at={timeOf(letter.timestamp)} exact />],
          [
            "Why",
            <span key="why">
              <strong>{letter.error_class}</strong>: <bdi>{letter.error_message}</bdi>
            </span>,
          ],
          ["Schema id", letter.schema_id ?? NONE],
          ["Found", <Time key="failed" at={timeOf(letter.failed_at)} exact />],
          ["State", <StandingBadge key="state" standing={letter.standing} />],
        ]}
      />
      <PayloadPart label="Value" payload={letter.value} />
      <PayloadPart label="Key" payload={letter.key} />
    </div>
  );
}

function PayloadPart({ label, payload }: { label: string; payload: Payload | null }) {
  if (payload === null) return <p className="faint">{label}: none.</p>;
  return (
    <div className="letter-payload">
      <CodeBlock label={`${label}: ${plural(payload.bytes, "byte")}`} text={hexDump(payload)} />
      {payload.error !== null && (
        <p className="faint small">
          Not decoded: <bdi>{payload.error}</bdi>
        </p>
      )}
      {payload.content !== null && <CodeBlock label={`${label}, decoded (${payload.format})`} text={visible(contentText(payload))} />}
    </div>
  );
}
