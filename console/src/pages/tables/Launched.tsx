import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { tableQuery, type ShownTable } from "@/api/tables";
import { useTableState } from "@/api/status";
import { Badge } from "@/components/Badge";
import { ButtonLink } from "@/components/Button";
import { Count, Stat, Stats } from "@/components/Figures";
import { Icon } from "@/components/Icon";
import { ErrorNotice, Notice, Progress, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { Freshness } from "./parts/Freshness";
import { launchSteps, stepOf, syncedShare, type Step } from "./launch";

const POLL_MS = 1000;

/** A table that was just launched, as it comes up. */
export function Launched({ topic }: { topic: string }) {
  const { data, error, refetch } = useQuery({
    ...tableQuery(topic),
    // The stream tells of changes of state; meanwhile rows come in between.
    refetchInterval: (query) => (query.state.data?.state === "Running" ? false : POLL_MS),
  });
  const live = useTableState(topic);
  if (data === undefined) return error === null ? <Spinner /> : <ErrorNotice error={error} retry={() => void refetch()} />;
  const newest = live !== undefined && live.updated_at > data.updated_at ? { ...data, state: live.state, reason: live.reason, rows: live.rows, lag: live.lag, freshness: live.freshness } : data;
  return <Coming table={newest} />;
}

function Coming({ table }: { table: ShownTable }) {
  const [reached, setReached] = useState(0);
  if (stepOf(table.state) > reached) setReached(stepOf(table.state));
  const steps = launchSteps(table, reached);
  const running = table.state === "Running";
  const stopped = steps.find((step) => step.state === "stopped");
  return (
    <Panel
      title={running ? "It runs" : "On its way"}
      actions={<Badge state={table.state} />}
    >
      <div className="stack">
        <ol className="launch-steps" aria-live="polite">
          {steps.map((step) => (
            <StepLine key={step.label} step={step} />
          ))}
        </ol>
        {!running && stopped === undefined && <Progress share={syncedShare(table)} label={table.state === "Pending" ? "Waiting for the engine" : "Rows of what is in the topic"} />}
        {stopped !== undefined && (
          <Notice tone="warn" title={`The table is ${table.state}`}>
            <bdi>{table.reason}</bdi>
          </Notice>
        )}
        <Stats>
          <Stat label="Rows">
            <Count value={table.rows} />
          </Stat>
          <Stat label="Lag" hint="Offsets that are not in the table yet">
            <Count value={table.lag} />
          </Stat>
          <Stat label="Freshness" hint="How long the oldest record has been waiting">
            <Freshness seconds={table.freshness} />
          </Stat>
        </Stats>
        <div className="row">
          <ButtonLink kind={running ? "primary" : "plain"} href={paths.table(table.topic)}>
            Open the table
          </ButtonLink>
          <ButtonLink kind="quiet" href={paths.enableTable()}>
            Enable another topic
          </ButtonLink>
        </div>
      </div>
    </Panel>
  );
}

function StepLine({ step }: { step: Step }) {
  return (
    <li className={`launch-step ${step.state}`}>
      <span className="launch-mark" aria-hidden="true">
        {step.state === "done" && <Icon name="check" size={14} />}
        {step.state === "now" && <span className="spinner" />}
        {step.state === "stopped" && <Icon name="warning" size={14} />}
      </span>
      <div>
        <strong>{step.label}</strong>
        {step.state === "done" && <span className="visually-hidden"> is done</span>}
        {step.detail !== "" && (
          <p className="faint">
            <bdi>{step.detail}</bdi>
          </p>
        )}
      </div>
    </li>
  );
}
