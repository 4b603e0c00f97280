import { useEffect, useState } from "react";
import type { Schemas } from "@/api/model";
import { requests, useRequest, type ShownTable, type Snapshot } from "@/api/tables";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Facts, Time } from "@/components/Figures";
import { TextField, Tiles } from "@/components/Form";
import { ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { formatCount } from "@/lib/format";

type Plan = Schemas["RollbackPlanAnswer"];
type Records = "again" | "keep-out";

/** Back to an earlier snapshot: first what it would mean, then what becomes of the records between. */
export function Rollback({ table, snapshot, close }: { table: ShownTable; snapshot: Snapshot; close: () => void }) {
  const { topic } = table;
  const [records, setRecords] = useState<Records>();
  const [typed, setTyped] = useState("");
  const plan = useRequest<Plan>(topic, { ask: () => requests.planRollback(topic, snapshot.snapshot_id), quiet: true });
  const { mutate } = plan;
  useEffect(() => {
    mutate();
  }, [mutate]);
  const done = useRequest<unknown, Records>(topic, {
    ask: (chosen) => requests.rollback(topic, snapshot.snapshot_id, chosen),
    done: () => `${topic} is put back to the snapshot.`,
    then: close,
    quiet: true,
  });
  const found = plan.data;
  const refused = found?.refused ?? {};
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (records !== undefined && typed === topic) done.mutate(records);
      }}
    >
      <div className="dialog-body">
        {plan.error !== null && <ErrorNotice error={plan.error} retry={() => { mutate(); }} />}
        {found === undefined && plan.error === null && <Spinner label={plan.progress || "Looking what it would mean"} />}
        {found !== undefined && (
          <>
            <Notice tone="info" title="Nothing is changed yet: this is what it would mean." />
            <Facts items={facts(found)} />
            <Tiles<Records | "">
              label="What becomes of the records that the table has read since"
              value={records ?? ""}
              onChange={(chosen) => {
                if (chosen !== "") setRecords(chosen);
              }}
              tiles={[
                {
                  value: "again",
                  label: "Read them again",
                  description: refused.again ?? "The position goes back, and they are read again, as they are decoded then.",
                  disabled: refused.again !== undefined,
                },
                {
                  value: "keep-out",
                  label: "Keep them out",
                  description: refused["keep-out"] ?? "The position stays, and they stay out of the table, for good.",
                  disabled: refused["keep-out"] !== undefined,
                },
              ]}
            />
            {records !== undefined && (
              <TextField label="Type the table's name to confirm" hint={<Clip text={topic} mono />} value={typed} onChange={setTyped} />
            )}
          </>
        )}
        {done.error !== null && <ErrorNotice error={done.error} />}
      </div>
      <footer>
        <Button onClick={close}>Cancel</Button>
        <Button type="submit" kind="danger" busy={done.isPending} disabled={records === undefined || typed !== topic}>
          Roll back
        </Button>
      </footer>
    </form>
  );
}

function facts(plan: Plan): [string, React.ReactNode][] {
  const undone = Object.entries(plan.undone).map(([kind, count]) => `${count} × ${kind}`);
  const ranges = plan.ranges.map((one) => `partition ${one.partition}: ${one.start} to ${one.end - 1}`);
  return [
    ["Back to", <Time key="to" at={plan.committed_at / 1000} exact />],
    ["Rows", `${formatCount(plan.rows)} now, ${formatCount(plan.rows_after)} then`],
    ["Snapshots that leave the history", undone.join(", ") || "none"],
    ["Offsets read since", ranges.length > 0 ? <Clip key="ranges" text={`${formatCount(plan.offsets)} (${ranges.join(", ")})`} lines={3} /> : formatCount(plan.offsets)],
    ...(plan.dead_letters > 0 ? ([["Of them dead letters", formatCount(plan.dead_letters)]] as [string, React.ReactNode][]) : []),
  ];
}
