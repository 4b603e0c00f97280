import { fileAddress, type Run } from "@/api/exports";
import { Badge, Tag } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Bytes, Count, Duration, Facts, Time } from "@/components/Figures";
import { Icon } from "@/components/Icon";
import { EmptyState, Notice } from "@/components/Notices";
import { Dialog } from "@/components/Dialog";
import { useSearchParam } from "@/lib/search";
import { formatUtc, plural } from "@/lib/format";
import { periodWords } from "./times";

/** The runs of an export, the newest first; one of them in a dialog, by a link of its own. */
export function Runs({ runs }: { runs: readonly Run[] }) {
  const [shown, show] = useSearchParam("run");
  const run = runs.find((one) => one.id === shown);
  return (
    <>
      <DataTable
        label="Runs"
        rows={runs}
        columns={columns}
        rowKey={(one) => one.id}
        onOpen={(one) => {
          show(one.id);
        }}
        empty={
          <EmptyState icon="clock" title="It has not run yet">
            It runs by its schedule, or at once by <b>Run now</b>.
          </EmptyState>
        }
      />
      <Dialog
        title="Run"
        wide
        open={run !== undefined}
        onClose={() => {
          show("");
        }}
      >
        {run !== undefined && <RunShown run={run} />}
      </Dialog>
    </>
  );
}

const columns: readonly Column<Run>[] = [
  {
    id: "period",
    header: "About",
    cell: (run) => <span className="number">{periodWords(run.from, run.to)}</span>,
    sort: (run) => run.from,
  },
  { id: "state", header: "State", cell: (run) => <RunState run={run} />, sort: (run) => run.state },
  { id: "by", header: "By", cell: (run) => run.made_by, sort: (run) => run.made_by, wideOnly: true },
  {
    id: "when",
    header: "When",
    cell: (run) => <Time at={run.ended_at ?? run.started_at ?? run.created_at} />,
    sort: (run) => run.ended_at ?? run.created_at,
  },
  { id: "rows", header: "Rows", cell: (run) => <Count value={run.rows} />, sort: (run) => run.rows, align: "right" },
  { id: "bytes", header: "File", cell: (run) => <Bytes value={run.bytes} />, sort: (run) => run.bytes, align: "right" },
  {
    id: "seconds",
    header: "Took",
    cell: (run) => <Duration seconds={run.seconds} />,
    sort: (run) => run.seconds,
    align: "right",
    wideOnly: true,
  },
  { id: "file", header: "Download", cell: (run) => <Download run={run} />, align: "right" },
];

function RunState({ run }: { run: Run }) {
  const again = run.retry_at === null ? "" : `tried again ${formatUtc(run.retry_at)}`;
  return (
    <span className="row">
      <Badge state={run.state} title={[run.reason, again].filter(Boolean).join("\n") || undefined} />
      {run.state === "Running" && run.progress !== null && (
        <span className="faint small number">{plural(run.progress, "row")} so far</span>
      )}
      {run.warnings.length > 0 && (
        <span title={run.warnings.join("\n")} className="warn run-warning">
          <Icon name="warning" size={14} />
          <span className="visually-hidden">{plural(run.warnings.length, "warning")}</span>
        </span>
      )}
    </span>
  );
}

/** The file, by a link that the browser follows with the rights of who is signed in. */
function Download({ run }: { run: Run }) {
  if (run.file === null || run.bytes === null) return <span className="nothing">–</span>;
  if (run.pruned !== null) return <span className="faint small" title={run.pruned}>removed</span>;
  return (
    <a className="download" href={fileAddress(run)} download>
      <Icon name="download" size={14} />
      <Clip text={nameOf(run.file)} />
    </a>
  );
}

/** The last part of a path or of an object's address. */
export function nameOf(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}

function RunShown({ run }: { run: Run }) {
  const told = Object.entries(run.told);
  return (
    <div className="dialog-body">
      {run.state === "Failed" && (
        <Notice tone="bad" title="Failed">
          <p>
            <bdi>{run.reason}</bdi>
          </p>
        </Notice>
      )}
      {run.warnings.map((text) => (
        <Notice key={text} tone="warn">
          <bdi>{text}</bdi>
        </Notice>
      ))}
      {run.unrepeatable.map((text) => (
        <Notice key={text} tone="info" title="It cannot be repeated exactly">
          <bdi>{text}</bdi>
        </Notice>
      ))}
      <Facts
        items={[
          ["State", <RunState key="state" run={run} />],
          ["About", <span key="period" className="number">{`${run.from} – ${run.to}`}</span>],
          ["Made by", run.made_by],
          ["Attempts", run.attempts],
          ["Asked for", <Time key="created" at={run.created_at} exact />],
          ["Began", <Time key="started" at={run.started_at} exact />],
          ["Ended", <Time key="ended" at={run.ended_at} exact />],
          ["Rows", <Count key="rows" value={run.rows} />],
          ["Bytes", <Bytes key="bytes" value={run.bytes} />],
          ["File", run.file === null ? "–" : <Clip key="file" text={run.file} mono lines={3} />],
          ["SHA-256", run.sha256 === null ? "–" : <Clip key="sha" text={run.sha256} mono lines={2} />],
          [
            "Snapshots",
            Object.entries(run.snapshots ?? {}).length === 0 ? (
              "–"
            ) : (
              <ul key="snapshots" className="plain">
                {Object.entries(run.snapshots ?? {}).map(([table, snapshot]) => (
                  <li key={table}>
                    <Clip text={table} /> <Tag>{String(snapshot)}</Tag>
                  </li>
                ))}
              </ul>
            ),
          ],
          [
            "Told",
            told.length === 0 ? (
              "nobody"
            ) : (
              <ul key="told" className="plain">
                {told.map(([address, answer]) => (
                  <li key={address}>
                    <Clip text={address} /> <span className="faint"><Clip text={answer} /></span>
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
    </div>
  );
}
