import { useState } from "react";
import { useCan } from "@/api/session";
import { useAct } from "@/api/act";
import { useTakeTable, wants, type ShownTable } from "@/api/tables";
import { Button } from "@/components/Button";
import { ConfirmDialog } from "@/components/Dialog";
import { Icon } from "@/components/Icon";
import { Menu, type MenuItem } from "@/components/Menu";
import { useGo } from "@/components/NavLink";
import { paths } from "@/lib/paths";

const ENDING: readonly string[] = ["disabled", "purged"];

/** What somebody may do with a table as a whole; what their role forbids is not there. */
export function TableActions({ table }: { table: ShownTable }) {
  const { topic } = table;
  const can = useCan();
  const take = useTakeTable();
  const [dialog, setDialog] = useState<"disable" | "purge" | "suspend">();
  const go = useGo();
  const refresh = [["table", topic], ["status"], ["topics"]];
  const sync = useAct({ run: () => wants.sync(topic), done: () => `${topic} catches up at once.`, refresh });
  const suspend = useAct({
    run: () => wants.suspend(topic),
    done: () => `${topic} is to be suspended.`,
    refresh,
    then: (found) => {
      take(found);
      setDialog(undefined);
    },
  });
  const resume = useAct({ run: () => wants.resume(topic, null), done: () => `${topic} is to be resumed.`, refresh, then: take });
  const disable = useAct({
    run: (purge: boolean) => wants.disable(topic, purge),
    done: (_, purge) => (purge ? `${topic} and its files are being deleted.` : `${topic} is being disabled.`),
    refresh: [["status"], ["topics"]],
    then: () => {
      setDialog(undefined);
      go(paths.tables());
    },
    quiet: true,
  });
  if (!can("writer", topic)) return null;
  if (ENDING.includes(table.desired)) return <span className="faint">{table.desired === "purged" ? "Being purged" : "Being disabled"}</span>;
  const suspended = table.desired === "suspended";
  const items: MenuItem[] = [
    { label: "Disable", icon: "close", onSelect: () => { setDialog("disable"); } },
    ...(can("admin", topic) ? [{ label: "Disable and purge", icon: "trash", danger: true, onSelect: () => { setDialog("purge"); } } as const] : []),
  ];
  return (
    <>
      {suspended ? (
        <Button kind="primary" icon="play" busy={resume.isPending} onClick={() => { resume.mutate(); }}>
          Resume
        </Button>
      ) : (
        <>
          <Button icon="refresh" busy={sync.isPending} onClick={() => { sync.mutate(); }}>
            Sync now
          </Button>
          <Button icon="pause" onClick={() => { setDialog("suspend"); }}>
            Suspend
          </Button>
        </>
      )}
      <Menu label="More actions" button={<Icon name="more" />} items={items} className="button icon-only" />
      <ConfirmDialog
        title="Suspend the table"
        confirm="Suspend"
        open={dialog === "suspend"}
        onClose={() => { setDialog(undefined); }}
        onConfirm={() => { suspend.mutate(); }}
        busy={suspend.isPending}
      >
        <p>
          Nothing is written until it is resumed, and it goes on from where it stood. Meanwhile the topic&apos;s retention goes on too: what it
          removes is missing then.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Disable the table"
        confirm="Disable"
        open={dialog === "disable"}
        onClose={() => { setDialog(undefined); }}
        onConfirm={() => { disable.mutate(false); }}
        busy={disable.isPending}
        error={disable.error}
      >
        <p>
          Headgate lists it no more. Rows, snapshots and position stay, and all engines read them. Enabled again, it goes on where it stood.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Purge the table"
        confirm="Delete the table and its files"
        typed={topic}
        open={dialog === "purge"}
        onClose={() => { setDialog(undefined); }}
        onConfirm={() => { disable.mutate(true); }}
        busy={disable.isPending}
        error={disable.error}
      >
        <p>The table is dropped, and the files of all its snapshots are deleted. This cannot be undone. The topic and its records stay.</p>
      </ConfirmDialog>
    </>
  );
}
