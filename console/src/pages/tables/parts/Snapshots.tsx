import { useMemo, useState } from "react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { askLake } from "@/api/lake";
import { useCan } from "@/api/session";
import { historyQuery, requests, useRequest, type ShownTable, type Snapshot } from "@/api/tables";
import { Tag } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { DataTable, type Column } from "@/components/DataTable";
import { Dialog } from "@/components/Dialog";
import { Bytes, Count, Duration, Facts, Time } from "@/components/Figures";
import { TextField } from "@/components/Form";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { formatCount, NONE, plural } from "@/lib/format";
import { useSearchParam } from "@/lib/search";
import { offsetsText, rowsChanged } from "../figures";
import { timeTravelSql } from "../read";
import { Rollback } from "./Rollback";
import { RowsGrid } from "./RowsGrid";

const COLUMNS: readonly Column<Snapshot>[] = [
  {
    id: "committed",
    header: "Committed",
    cell: (one) => <Time at={one.committed_at / 1000} />,
    search: (one) => `${one.snapshot_id} ${one.operation ?? ""} ${one.action ?? ""} ${one.refs.join(" ")} ${one.schema_changes.join(" ")}`,
  },
  { id: "operation", header: "Operation", cell: (one) => <Operation snapshot={one} /> },
  { id: "rows", header: "Rows", align: "right", cell: (one) => <Changed {...rowsChanged(one)} /> },
  { id: "total", header: "Rows then", align: "right", cell: (one) => <Count value={one.after.rows} short /> },
  { id: "files", header: "Files", align: "right", cell: (one) => <Changed added={one.files_added} gone={one.files_removed} /> },
  { id: "bytes", header: "Added", align: "right", wideOnly: true, cell: (one) => <Bytes value={one.bytes_added} /> },
  { id: "seconds", header: "Took", align: "right", wideOnly: true, cell: (one) => <Duration seconds={one.seconds} /> },
  {
    id: "id",
    header: "Snapshot",
    wideOnly: true,
    cell: (one) => <Clip text={one.snapshot_id} mono />,
  },
];

/** What each snapshot did, and the table as it was then. */
export function Snapshots({ table, cluster }: { table: ShownTable; cluster: string }) {
  const { topic } = table;
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({ ...historyQuery(topic), retry: false });
  const [chosen, choose] = useSearchParam("snapshot");
  const snapshots = useMemo(() => data?.pages.flatMap((page) => page.snapshots) ?? [], [data]);
  const shown = snapshots.find((one) => one.snapshot_id === chosen);
  const total = data?.pages[0]?.total ?? snapshots.length;
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Spinner />;
  return (
    <>
      <DataTable
        label="Snapshots"
        rows={snapshots}
        columns={COLUMNS}
        rowKey={(one) => one.snapshot_id}
        onOpen={(one) => {
          choose(one.snapshot_id);
        }}
        searchLabel="Search snapshots"
        param="snapshots"
        selected={(one) => one.snapshot_id === chosen}
        empty={
          <EmptyState title="No snapshot yet" icon="clock">
            The first one comes with the table&apos;s first batch.
          </EmptyState>
        }
      />
      {hasNextPage && (
        <div className="row">
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show older ones
          </Button>
          <span className="faint small">
            {formatCount(snapshots.length)} of {plural(total, "snapshot")}
          </span>
        </div>
      )}
      <Dialog
        title="The table as it was"
        wide
        open={shown !== undefined}
        onClose={() => {
          choose("");
        }}
      >
        {shown !== undefined && (
          <SnapshotDialog
            key={shown.snapshot_id}
            table={table}
            snapshot={shown}
            cluster={cluster}
            close={() => {
              choose("");
            }}
          />
        )}
      </Dialog>
    </>
  );
}

function Operation({ snapshot }: { snapshot: Snapshot }) {
  const { action, operation, refs, is_current_ancestor: isAncestor } = snapshot;
  return (
    <span className="row">
      {action ?? operation ?? NONE}
      {refs.map((ref) => (
        <Tag key={ref} title={ref === "main" ? "The present snapshot" : "Keeps this snapshot"}>
          {ref === "main" ? "now" : ref}
        </Tag>
      ))}
      {!isAncestor && <Tag title="It was rolled back, and is not in the table's history any more">undone</Tag>}
      {snapshot.schema_changes.length > 0 && <Tag title={snapshot.schema_changes.join("\n")}>schema</Tag>}
    </span>
  );
}

function Changed({ added, gone }: { added: number; gone: number }) {
  if (added === 0 && gone === 0) return <span className="nothing">0</span>;
  return (
    <span className="number">
      {added > 0 && <span className="came">+{formatCount(added)}</span>} {gone > 0 && <span className="went">−{formatCount(gone)}</span>}
    </span>
  );
}

interface DialogProps {
  table: ShownTable;
  snapshot: Snapshot;
  cluster: string;
  close: () => void;
}

const SAMPLE = 20;

function SnapshotDialog({ table, snapshot, cluster, close }: DialogProps) {
  const { topic } = table;
  const can = useCan();
  const [wants, setWants] = useState<"sample" | "tag" | "rollback">();
  const current = snapshot.refs.includes("main");
  const { before, after } = snapshot;
  if (wants === "rollback") return <Rollback table={table} snapshot={snapshot} close={close} />;
  return (
    <>
      <div className="dialog-body">
        <Facts
          items={[
            ["Snapshot", <Clip key="id" text={snapshot.snapshot_id} mono />],
            ["Committed", <Time key="at" at={snapshot.committed_at / 1000} exact />],
            ["What it was", `${snapshot.action ?? NONE} (${snapshot.operation ?? NONE})`],
            ["Rows", `${before === null ? NONE : formatCount(before.rows)} → ${formatCount(after.rows)}`],
            ["Files", `${before === null ? NONE : formatCount(before.files)} → ${formatCount(after.files)}`],
            ["Offsets", <Clip key="to" text={offsetsText(snapshot.to) || NONE} mono lines={2} />],
            ...(snapshot.asked_by === null ? [] : ([["Asked by", <Clip key="by" text={snapshot.asked_by} />]] as const)),
            ...(snapshot.schema_changes.length === 0 ? [] : ([["Schema", <Clip key="schema" text={snapshot.schema_changes.join("; ")} lines={3} />]] as const)),
          ]}
        />
        <CodeBlock label="SQL" text={timeTravelSql(cluster, topic, snapshot.snapshot_id)} />
        {wants === "sample" && <Sample sql={timeTravelSql(cluster, topic, snapshot.snapshot_id, SAMPLE)} />}
        {wants === "tag" && <TagForm topic={topic} snapshot={snapshot.snapshot_id} close={() => { setWants(undefined); }} />}
        {snapshot.refs.filter((ref) => ref !== "main" && ref !== "headgate-position").map((ref) => (
          <TagLine key={ref} topic={topic} name={ref} removes={can("admin", topic)} />
        ))}
      </div>
      <footer>
        {can("admin", topic) && !current && snapshot.is_current_ancestor && (
          <Button icon="clock" onClick={() => { setWants("rollback"); }}>
            Roll back to it
          </Button>
        )}
        {can("writer", topic) && wants !== "tag" && (
          <Button icon="lock" onClick={() => { setWants("tag"); }}>
            Tag it
          </Button>
        )}
        {wants !== "sample" && (
          <Button kind="primary" icon="search" onClick={() => { setWants("sample"); }}>
            Show rows as of then
          </Button>
        )}
      </footer>
    </>
  );
}

function Sample({ sql }: { sql: string }) {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["sample", sql],
    queryFn: ({ signal }) => askLake(sql, signal),
    staleTime: Infinity,
    retry: false,
  });
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  if (isPending) return <Spinner label="Reading the snapshot" />;
  if (data.length === 0) return <p className="faint">It had no rows then.</p>;
  return <RowsGrid label="Rows as of the snapshot" rows={data} />;
}

const OWN_TAG = /^(?=.*[^0-9])[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

function TagForm({ topic, snapshot, close }: { topic: string; snapshot: string; close: () => void }) {
  const [name, setName] = useState("");
  const [keep, setKeep] = useState("");
  const tag = useRequest(topic, {
    ask: () => requests.tag(topic, name, snapshot, keep.trim()),
    done: () => `The snapshot is tagged ${name}.`,
    then: close,
    quiet: true,
  });
  const wrong = name !== "" && !OWN_TAG.test(name);
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong && name !== "") tag.mutate();
      }}
    >
      <TextField
        label="Name of the tag"
        placeholder="end-of-january"
        value={name}
        onChange={setName}
        error={wrong ? "Letters, digits, '_', '-' and '.', not of digits alone." : undefined}
      />
      <TextField label="Keep it for" optional placeholder="90d" hint="Until it is removed, if nothing is said." value={keep} onChange={setKeep} />
      {tag.error !== null && <ErrorNotice error={tag.error} />}
      <div className="row">
        <Button type="submit" kind="primary" busy={tag.isPending} disabled={wrong || name === ""}>
          Tag the snapshot
        </Button>
        <Button kind="quiet" onClick={close}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

function TagLine({ topic, name, removes }: { topic: string; name: string; removes: boolean }) {
  const untag = useRequest(topic, { ask: () => requests.untag(topic, name), done: () => `The tag ${name} is removed.` });
  return (
    <div className="row">
      <span>
        Tagged <bdi className="mono">{name}</bdi>: expiry keeps it.
      </span>
      {removes && (
        <Button small icon="trash" busy={untag.isPending} onClick={() => { untag.mutate(); }}>
          Remove the tag
        </Button>
      )}
    </div>
  );
}
