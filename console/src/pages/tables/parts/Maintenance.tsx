import { useMemo, useState } from "react";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Schemas } from "@/api/model";
import { useCan } from "@/api/session";
import { historyQuery, requests, useRequest, type ShownTable } from "@/api/tables";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { ConfirmDialog } from "@/components/Dialog";
import { Count, Time } from "@/components/Figures";
import { CheckField } from "@/components/Form";
import { EmptyState, ErrorNotice, Notice, Progress } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { formatBytes, formatCount, plural } from "@/lib/format";
import { shellWord } from "@/lib/quote";
import { maintained, type Maintained } from "../figures";

const COLUMNS: readonly Column<Maintained>[] = [
  { id: "at", header: "When", cell: (one) => <Time at={one.at} />, sort: (one) => one.at },
  { id: "what", header: "What", cell: (one) => <strong>{one.what}</strong>, sort: (one) => one.what, search: (one) => `${one.what} ${one.text}` },
  { id: "files", header: "Files", align: "right", cell: (one) => <Between before={one.before?.files} after={one.after?.files} show={formatCount} /> },
  { id: "bytes", header: "Size", align: "right", cell: (one) => <Between before={one.before?.bytes} after={one.after?.bytes} show={formatBytes} /> },
  { id: "rows", header: "Rows", align: "right", cell: (one) => <Between before={one.before?.rows} after={one.after?.rows} show={formatCount} /> },
  {
    id: "text",
    header: "Result",
    cell: (one) => (
      <span className="small">
        <Clip text={[one.text, one.askedBy === null ? "" : `asked by ${one.askedBy}`].filter(Boolean).join("; ")} lines={2} />
      </span>
    ),
  },
];

function Between({ before, after, show }: { before: number | undefined; after: number | undefined; show: (value: number) => string }) {
  if (after === undefined) return null;
  return (
    <span className="number">
      {before === undefined ? "" : `${show(before)} → `}
      {show(after)}
    </span>
  );
}

/** What was done to keep the table in shape, and what can be done now. */
export function Maintenance({ table }: { table: ShownTable }) {
  const { topic } = table;
  const { data } = useInfiniteQuery({ ...historyQuery(topic), retry: false });
  const done = useMemo(() => maintained(data?.pages.flatMap((page) => page.snapshots) ?? [], table.events), [data, table.events]);
  return (
    <>
      <Actions table={table} />
      <DataTable
        label="Maintenance history"
        rows={done}
        columns={COLUMNS}
        rowKey={(one) => one.id}
        sorted="-at"
        param="maintenance"
        empty={
          <EmptyState title="Nothing was done yet" icon="clock" command={`headgate table compact ${shellWord(topic)}`}>
            Tables are looked at every hour: small files are packed, old snapshots expire, and files that no snapshot knows are removed.
          </EmptyState>
        }
      />
    </>
  );
}

type Compacted = Schemas["CompactedAnswer"];
type Expired = Schemas["ExpiredAnswer"];
type Cleaned = Schemas["CleanedAnswer"];
type Verified = Schemas["VerifiedAnswer"];

function Actions({ table }: { table: ShownTable }) {
  const { topic } = table;
  const can = useCan();
  const [asks, setAsks] = useState<"expire" | "clean">();
  const [all, setAll] = useState(false);
  const [deep, setDeep] = useState(false);
  const close = (): void => {
    setAsks(undefined);
  };
  const compact = useRequest<Compacted>(topic, {
    ask: () => requests.compact(topic, all),
    done: (found) => `${plural(found.files_before, "file")} are ${formatCount(found.files_after)} now, ${formatBytes(found.bytes_before)} are ${formatBytes(found.bytes_after)}.`,
  });
  const expire = useRequest<Expired>(topic, {
    ask: () => requests.expire(topic),
    done: (found) => `${plural(found.snapshots_before - found.snapshots_after, "snapshot")} expired, ${plural(found.data_files_removed, "data file")} removed.`,
  });
  const clean = useRequest<Cleaned>(topic, {
    ask: () => requests.clean(topic),
    done: (found) => `${plural(found.orphans_removed, "file")} removed.`,
  });
  const mirror = useRequest(topic, { ask: () => requests.mirror(topic, false), done: () => "The Delta log is up to date." });
  const verify = useRequest<Verified>(topic, { ask: () => requests.verify(topic, deep), quiet: true });
  const suspended = table.desired === "suspended";
  const running = [
    { act: compact, label: "Packing files" },
    { act: expire, label: "Expiring snapshots" },
    { act: clean, label: "Removing orphans" },
    { act: mirror, label: "Bringing the Delta log up to date" },
    { act: verify, label: "Verifying" },
  ].filter(({ act }) => act.isPending);
  if (!can("writer", topic)) return null;
  return (
    <>
      <Panel title="Do it now" about="Carried out by the engine between two batches of the table.">
        <div className="stack">
          {suspended && <Notice tone="info" title="The table is suspended: the engine leaves it alone. It can be verified all the same." />}
          <ul className="maintenance-acts">
            <li>
              <div>
                <strong>Compact</strong>
                <p className="faint small">Packs small files, and lets deleted rows leave the files.</p>
                <CheckField label="Every file, whatever its size" checked={all} onChange={setAll} />
              </div>
              <Button busy={compact.isPending} disabled={suspended} onClick={() => { compact.mutate(); }}>
                Compact
              </Button>
            </li>
            <li>
              <div>
                <strong>Verify</strong>
                <p className="faint small">Holds files, deletes, offsets and the Delta log against each other. Changes nothing.</p>
                <CheckField label="Read every row too" checked={deep} onChange={setDeep} />
              </div>
              <Button busy={verify.isPending} onClick={() => { verify.mutate(); }}>
                Verify
              </Button>
            </li>
            {table.spec.formats.includes("delta") && (
              <li>
                <div>
                  <strong>Mirror</strong>
                  <p className="faint small">Brings the Delta log up to date with the Iceberg side.</p>
                </div>
                <Button busy={mirror.isPending} disabled={suspended} onClick={() => { mirror.mutate(); }}>
                  Mirror
                </Button>
              </li>
            )}
            {can("admin", topic) && (
              <>
                <li>
                  <div>
                    <strong>Expire snapshots</strong>
                    <p className="faint small">Removes old snapshots with the files that only they hold.</p>
                  </div>
                  <Button busy={expire.isPending} disabled={suspended} onClick={() => { setAsks("expire"); }}>
                    Expire
                  </Button>
                </li>
                <li>
                  <div>
                    <strong>Clean</strong>
                    <p className="faint small">Removes old files in its folder that no snapshot knows.</p>
                  </div>
                  <Button busy={clean.isPending} disabled={suspended} onClick={() => { setAsks("clean"); }}>
                    Clean
                  </Button>
                </li>
              </>
            )}
          </ul>
          {running.map(({ act, label }) => (
            <Progress key={label} label={act.progress === "" ? label : `${label}: ${act.progress}`} />
          ))}
        </div>
      </Panel>
      {verify.error !== null && <ErrorNotice title="It could not be verified" error={verify.error} />}
      {verify.data !== undefined && <Verification found={verify.data} />}
      <ConfirmDialog
        title="Expire old snapshots"
        confirm="Expire"
        open={asks === "expire"}
        onClose={close}
        onConfirm={() => { close(); expire.mutate(); }}
      >
        <p>Snapshots older than configured (five days, if nothing is said) go for good; time travel to them is over. Tags keep theirs.</p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Remove files that no snapshot knows"
        confirm="Clean"
        open={asks === "clean"}
        onClose={close}
        onConfirm={() => { close(); clean.mutate(); }}
      >
        <p>Files older than configured (three days, if nothing is said) that belong to no snapshot are deleted. Files of the table never are.</p>
      </ConfirmDialog>
    </>
  );
}

const CHECK_TONES = { ok: "good", damaged: "bad", skipped: "idle" } as const;

function Verification({ found }: { found: Verified }) {
  return (
    <Panel
      title={found.damaged ? "The table is damaged" : "The table is sound"}
      about={
        <>
          <Count value={found.rows} /> rows in <Count value={found.files} /> files of snapshot <bdi className="mono">{found.snapshot_id}</bdi>
          {found.deep ? ", every row read" : ""}
        </>
      }
    >
      <div className="stack">
        <ul className="check-list">
          {found.checks.map((check) => (
            <li key={check.name}>
              <Badge state={check.state} tone={CHECK_TONES[check.state]} />
              <strong>{check.name}</strong>
              <span className="faint small">
                <Clip text={check.detail} lines={2} />
              </span>
            </li>
          ))}
        </ul>
        {found.findings.length > 0 && (
          <Notice tone="bad" title={plural(found.findings_total, "finding")}>
            <ul>
              {found.findings.map((one) => (
                <li key={`${one.check} ${one.where} ${one.message}`}>
                  <bdi className="mono">{one.where}</bdi>: <bdi>{one.message}</bdi>
                </li>
              ))}
            </ul>
          </Notice>
        )}
      </div>
    </Panel>
  );
}
