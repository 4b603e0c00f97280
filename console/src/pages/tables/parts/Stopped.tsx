import { useState } from "react";
import { useAct } from "@/api/act";
import { useAttention } from "@/api/status";
import { useCan } from "@/api/session";
import { resultOf, useTakeTable, wants, type ShownTable } from "@/api/tables";
import { Button } from "@/components/Button";
import { Sentence } from "@/components/CodeBlock";
import { ConfirmDialog } from "@/components/Dialog";
import { Notice } from "@/components/Notices";
import { acceptable, type Accept } from "../figures";
import { needsAttention } from "../states";

const ACCEPTS: Record<Accept, { button: string; title: string; text: string }> = {
  lost: {
    button: "Accept the loss and resume",
    title: "Go on without the lost records",
    text: "The topic no longer has records that the table has not read, or has lost some that it holds. The table goes on behind them; the snapshot that does so names their offsets. They cannot be had any more.",
  },
  "new-topic": {
    button: "Accept the new topic and resume",
    title: "Go on with the new topic",
    text: "The topic was deleted and created again. Its records are added, from its beginning, to the rows of the old one.",
  },
  "new-timeline": {
    button: "Accept the new timeline and resume",
    title: "Go on with the restored database",
    text: "The database of these change events was restored. Positions of its log begin again; rows that it does not repeat stay.",
  },
};

/** Why a table does not run, and what lets it go on. */
export function Stopped({ table }: { table: ShownTable }) {
  const { topic, reason } = table;
  const can = useCan();
  const take = useTakeTable();
  const attention = useAttention().find((one) => one.kind === "table" && one.name === topic);
  const [asks, setAsks] = useState(false);
  const refresh = [["table", topic], ["status"]];
  const resume = useAct({
    run: async (accept: Accept | null) => {
      const found = await wants.resume(topic, accept);
      if (found.request !== undefined) await resultOf(topic, found.request);
      return found;
    },
    done: () => `${topic} is to be resumed.`,
    refresh,
    then: (found) => {
      take(found);
      setAsks(false);
    },
  });
  if (!needsAttention(table)) return null;
  const byHand = table.desired === "suspended";
  const accept = acceptable(`${reason} ${attention?.remedy ?? ""}`);
  const words = accept === null ? undefined : ACCEPTS[accept];
  return (
    <>
      <Notice
        tone={table.state === "Failed" ? "bad" : "warn"}
        title={byHand ? "The table is suspended: nothing is written until it is resumed." : `The table is ${table.state}.`}
        action={
          table.state === "Suspended" &&
          !byHand &&
          can("writer", topic) && (
            <div className="row">
              <Button small icon="refresh" busy={resume.isPending && !asks} onClick={() => { resume.mutate(null); }}>
                Try again
              </Button>
              {words !== undefined && can("admin", topic) && (
                <Button small kind="primary" onClick={() => { setAsks(true); }}>
                  {words.button}
                </Button>
              )}
            </div>
          )
        }
      >
        {reason !== "" && (
          <p>
            <bdi>{reason}</bdi>
          </p>
        )}
        {attention?.remedy != null && attention.remedy !== "" && (
          <p className="remedy">
            <Sentence text={attention.remedy} />
          </p>
        )}
      </Notice>
      {accept !== null && words !== undefined && (
        <ConfirmDialog
          title={words.title}
          confirm={words.button}
          typed={topic}
          open={asks}
          onClose={() => { setAsks(false); }}
          onConfirm={() => { resume.mutate(accept); }}
          busy={resume.isPending}
        >
          <p>{words.text}</p>
        </ConfirmDialog>
      )}
    </>
  );
}
