import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useAct } from "@/api/act";
import { exportQuery, EXPORTS, pauseExport, removeExport, resumeExport, runsQuery, type ShownExport } from "@/api/exports";
import { useCan } from "@/api/session";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { ConfirmDialog } from "@/components/Dialog";
import { Bytes, Count, Duration, Stat, Stats, Time } from "@/components/Figures";
import { Icon } from "@/components/Icon";
import { Menu } from "@/components/Menu";
import { useGo } from "@/components/NavLink";
import { ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { Page, Panel, Tabs } from "@/components/Page";
import { plural } from "@/lib/format";
import { paths } from "@/lib/paths";
import { AdminsOnly } from "@/shell/AdminsOnly";
import { DefinitionOf } from "./DefinitionOf";
import { MailTest } from "./MailTest";
import { NextRun } from "./NextRun";
import { RunNow } from "./RunNow";
import { Runs } from "./Runs";
import "./exports.css";

const FROM = { label: "Exports", href: paths.exports() };

/** One export: when it runs, what it has made, and what it is. */
export function Export() {
  const { name = "" } = useParams({ strict: false });
  const can = useCan();
  if (!can("admin")) return <AdminsOnly title={name} what="Exports take data out of the lake: they" />;
  return <Asked key={name} name={name} />;
}

function Asked({ name }: { name: string }) {
  const found = useQuery(exportQuery(name));
  if (found.data !== undefined) return <Shown export={found.data} />;
  if (found.error === null) return <Spinner />;
  return (
    <Page title={name} from={FROM}>
      <ErrorNotice error={found.error} retry={() => void found.refetch()} />
    </Page>
  );
}

const FEW = 50;
const ALL = 1000;

function Shown({ export: one }: { export: ShownExport }) {
  const [limit, setLimit] = useState(FEW);
  const runs = useQuery({ ...runsQuery(one.name, limit), placeholderData: (before) => before });
  return (
    <Page
      title={one.name}
      from={FROM}
      beside={<Badge state={one.state === "paused" ? "Paused" : "Active"} />}
      actions={<Actions export={one} />}
    >
      {one.warnings.length > 0 && (
        <Notice tone="warn" title="Before it leaves">
          <ul>
            {one.warnings.map((text) => (
              <li key={text}>
                <bdi>{text}</bdi>
              </li>
            ))}
          </ul>
        </Notice>
      )}
      <Panel>
        <Figures export={one} />
      </Panel>
      <Tabs
        label="Export"
        items={[
          {
            id: "runs",
            label: "History",
            panel: () =>
              runs.data === undefined ? (
                runs.error === null ? (
                  <Spinner />
                ) : (
                  <ErrorNotice error={runs.error} />
                )
              ) : (
                <>
                  <Runs runs={runs.data} />
                  {runs.data.length === limit && limit < ALL && (
                    <div>
                      <Button
                        busy={runs.isPlaceholderData}
                        onClick={() => {
                          setLimit(ALL);
                        }}
                      >
                        Older ones
                      </Button>
                    </div>
                  )}
                </>
              ),
          },
          { id: "definition", label: "Definition", panel: () => <DefinitionOf export={one} /> },
        ]}
      />
    </Page>
  );
}

function Figures({ export: one }: { export: ShownExport }) {
  const last = one.runs.find((run) => run.ended_at !== null);
  return (
    <Stats>
      <Stat label="Next run">
        <NextRun next={one.next} />
      </Stat>
      <Stat label="Schedule" hint={one.zone}>
        <span className="schedule">
          <Clip text={one.schedule} mono />
        </span>
      </Stat>
      <Stat label="Last run">{last === undefined ? <span className="nothing">none yet</span> : <Time at={last.ended_at} />}</Stat>
      <Stat label="Rows">
        <Count value={last?.rows} short />
      </Stat>
      <Stat label="File">
        <Bytes value={last?.bytes} />
      </Stat>
      <Stat label="Took">
        <Duration seconds={last?.seconds} />
      </Stat>
    </Stats>
  );
}

type Asking = "run" | "mail" | "remove" | null;

function Actions({ export: one }: { export: ShownExport }) {
  const [asking, ask] = useState<Asking>(null);
  const go = useGo();
  const close = (): void => {
    ask(null);
  };
  const refresh = [[...EXPORTS]];
  const paused = one.state === "paused";
  const toggle = useAct({
    run: () => (paused ? resumeExport(one.name) : pauseExport(one.name)),
    done: () => (paused ? `${one.name} goes on with its schedule.` : `${one.name} is paused.`),
    refresh,
  });
  const remove = useAct({
    run: () => removeExport(one.name),
    done: () => `${one.name} is removed.`,
    quiet: true,
    refresh,
    then: () => {
      go(paths.exports(), { replace: true });
    },
  });
  return (
    <>
      <Button
        kind="primary"
        icon="play"
        onClick={() => {
          ask("run");
        }}
      >
        Run now
      </Button>
      <Button
        icon={paused ? "play" : "pause"}
        busy={toggle.isPending}
        onClick={() => {
          toggle.mutate();
        }}
      >
        {paused ? "Resume" : "Pause"}
      </Button>
      <Menu
        label="More"
        className="button icon-only"
        button={<Icon name="more" />}
        items={[
          {
            label: "Send a test mail",
            icon: "send",
            onSelect: () => {
              ask("mail");
            },
          },
          {
            label: "Remove",
            icon: "trash",
            danger: true,
            onSelect: () => {
              ask("remove");
            },
          },
        ]}
      />
      <RunNow export={one} open={asking === "run"} onClose={close} />
      <MailTest export={one} open={asking === "mail"} onClose={close} />
      <ConfirmDialog
        title="Remove the export"
        open={asking === "remove"}
        onClose={close}
        onConfirm={() => {
          remove.mutate();
        }}
        confirm="Remove"
        typed={one.name}
        busy={remove.isPending}
        error={remove.error}
      >
        <p>
          It makes no more files, and its history{one.runs.length > 0 && `, ${plural(one.runs.length, "run")} or more,`} is
          forgotten. Files that it has made stay.
        </p>
      </ConfirmDialog>
    </>
  );
}
