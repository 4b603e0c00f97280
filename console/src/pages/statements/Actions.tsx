import { useState } from "react";
import { useAct } from "@/api/act";
import { STATUS } from "@/api/live";
import { useCan } from "@/api/session";
import {
  deleteStatement,
  finishStatement,
  resetStatement,
  startStatement,
  stopStatement,
  type ResetPlan,
  type ShownStatement,
} from "@/api/statements";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { ConfirmDialog, Dialog } from "@/components/Dialog";
import { Field, Select } from "@/components/Form";
import { Icon } from "@/components/Icon";
import { Menu } from "@/components/Menu";
import { useGo } from "@/components/NavLink";
import { ErrorNotice } from "@/components/Notices";
import { plural } from "@/lib/format";
import { paths } from "@/lib/paths";

/** What can be done with a statement, as far as one's role allows it. */
export function Actions({ statement }: { statement: ShownStatement }) {
  const { name } = statement;
  const output = statement.options.tables?.output?.topic;
  const can = useCan();
  const [asked, setAsked] = useState<"finish" | "reset" | "delete" | null>(null);
  const refresh = [["statement", name], STATUS];
  const stop = useAct({ run: () => stopStatement(name), done: () => `${name} is stopping`, refresh });
  const start = useAct({ run: () => startStatement(name), done: () => `${name} is starting`, refresh });
  const close = (): void => {
    setAsked(null);
  };
  if (!can("writer", output)) return null;
  const isStopped = statement.desired === "stopped" || statement.state === "Failed";
  const isAdmin = can("admin", output);
  return (
    <>
      {isStopped ? (
        <Button
          kind="primary"
          icon="play"
          busy={start.isPending}
          onClick={() => {
            start.mutate();
          }}
        >
          Start
        </Button>
      ) : (
        statement.state !== "Completed" && (
          <Button
            icon="pause"
            busy={stop.isPending}
            onClick={() => {
              stop.mutate();
            }}
          >
            Stop
          </Button>
        )
      )}
      <Menu
        label="More"
        className="button icon-only"
        button={<Icon name="more" />}
        items={[
          {
            label: "Close what has come",
            icon: "check",
            disabled: statement.state !== "Running",
            onSelect: () => {
              setAsked("finish");
            },
          },
          ...(isAdmin
            ? ([
                {
                  label: "Begin elsewhere",
                  icon: "refresh",
                  disabled: statement.state !== "Stopped",
                  onSelect: () => {
                    setAsked("reset");
                  },
                },
                {
                  label: "Delete",
                  icon: "trash",
                  danger: true,
                  onSelect: () => {
                    setAsked("delete");
                  },
                },
              ] as const)
            : []),
        ]}
      />
      <Finish name={name} open={asked === "finish"} onClose={close} />
      <Reset name={name} open={asked === "reset"} onClose={close} />
      <Delete name={name} open={asked === "delete"} onClose={close} />
    </>
  );
}

interface AskProps {
  name: string;
  open: boolean;
  onClose: () => void;
}

function Finish({ name, open, onClose }: AskProps) {
  const finish = useAct({
    run: () => finishStatement(name),
    done: () => `${name} closes what has come`,
    refresh: [["statement", name]],
    then: onClose,
    quiet: true,
  });
  return (
    <ConfirmDialog
      title="Close what has come"
      open={open}
      onClose={onClose}
      onConfirm={() => {
        finish.mutate();
      }}
      confirm="Close it"
      busy={finish.isPending}
      error={finish.error}
    >
      <p>
        Event time passes everything that <Clip text={name} /> has read, so that windows close and joins give what they wait with. It
        goes on running: rows that come later and are older are late.
      </p>
    </ConfirmDialog>
  );
}

function Delete({ name, open, onClose }: AskProps) {
  const go = useGo();
  const remove = useAct({
    run: () => deleteStatement(name),
    done: () => `${name} is being deleted`,
    refresh: [STATUS],
    quiet: true,
    then: () => {
      go(paths.statements(), { replace: true });
    },
  });
  return (
    <ConfirmDialog
      title="Delete the statement"
      open={open}
      onClose={onClose}
      onConfirm={() => {
        remove.mutate();
      }}
      confirm="Delete the statement"
      typed={name}
      busy={remove.isPending}
      error={remove.error}
    >
      <p>It stops, and its position and state are deleted. The topic that it writes stays, with its records.</p>
    </ConfirmDialog>
  );
}

const STARTS = [
  { value: "earliest", label: "Everything that its topics have" },
  { value: "latest", label: "What comes from now on" },
  { value: "time", label: "From a time" },
] as const;

/** Says first what would be repeated and skipped; only then it can be done. */
function Reset({ name, open, onClose }: AskProps) {
  return (
    <Dialog title="Begin elsewhere" open={open} onClose={onClose}>
      <ResetForm name={name} onClose={onClose} />
    </Dialog>
  );
}

function ResetForm({ name, onClose }: Omit<AskProps, "open">) {
  const [from, setFrom] = useState<(typeof STARTS)[number]["value"]>("earliest");
  const [time, setTime] = useState("");
  const [plan, setPlan] = useState<ResetPlan | null>(null);
  const start = from === "time" ? isoOf(time) : from;
  const ask = useAct({
    run: () => resetStatement(name, { from: start ?? "", dry_run: true }),
    quiet: true,
    then: setPlan,
  });
  const reset = useAct({
    run: () => resetStatement(name, { from: plan?.places ?? start ?? "", dry_run: false }),
    done: () => `${name} begins elsewhere; start it when it is Stopped again`,
    refresh: [["statement", name], STATUS],
    quiet: true,
    then: onClose,
  });
  const again = (): void => {
    setPlan(null);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (plan === null) ask.mutate();
        else reset.mutate();
      }}
    >
      <div className="dialog-body">
        <p>Its state is deleted, and it reads from another place when it is started again.</p>
        <Field label="From">
          {(control) => (
            <Select
              {...control}
              value={from}
              options={STARTS}
              onChange={(chosen) => {
                setFrom(chosen);
                again();
              }}
            />
          )}
        </Field>
        {from === "time" && (
          <Field label="Time">
            {(control) => (
              <input
                {...control}
                type="datetime-local"
                step="1"
                value={time}
                onChange={(event) => {
                  setTime(event.target.value);
                  again();
                }}
              />
            )}
          </Field>
        )}
        {plan !== null && <Plan plan={plan} />}
        {(ask.error ?? reset.error) !== null && <ErrorNotice error={ask.error ?? reset.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          type="submit"
          kind={plan === null ? "primary" : "danger"}
          disabled={start === undefined}
          busy={ask.isPending || reset.isPending}
        >
          {plan === null ? "Show what it means" : "Begin there"}
        </Button>
      </footer>
    </form>
  );
}

function Plan({ plan }: { plan: ResetPlan }) {
  const count = (spans: ResetPlan["repeats"]): number => spans.reduce((sum, span) => sum + span.end - span.start, 0);
  return (
    <ul className="stack">
      <li>
        <strong>{plural(count(plan.repeats), "record")}</strong> are read again: their results are written a second time.
      </li>
      <li>
        <strong>{plural(count(plan.skips), "record")}</strong> are skipped: nothing comes of them.
      </li>
    </ul>
  );
}

function isoOf(local: string): string | undefined {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
