import { useState } from "react";
import { useMend, type Mending } from "@/api/mend";
import type { Attention } from "@/api/model";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Sentence } from "@/components/CodeBlock";
import { ConfirmDialog } from "@/components/Dialog";
import { Time } from "@/components/Figures";
import { NavLink } from "@/components/NavLink";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";

const MOST = 6;

/** What is suspended, failing or waiting: each with its reason, and the button that mends it. */
export function NeedsAttention({ items }: { items: readonly Attention[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? items : items.slice(0, MOST);
  return (
    <Panel title={items.length === 1 ? "One thing needs attention" : `${items.length} things need attention`} flush>
      <ul className="attention">
        {shown.map((item) => (
          <Item key={`${item.kind} ${item.name} ${item.state}`} item={item} />
        ))}
      </ul>
      {items.length > MOST && (
        <Button
          kind="quiet"
          onClick={() => {
            setAll(!all);
          }}
        >
          {all ? "Show fewer" : `Show all ${items.length}`}
        </Button>
      )}
    </Panel>
  );
}

function Item({ item }: { item: Attention }) {
  const [asked, setAsked] = useState<Mending | null>(null);
  const mend = useMend(() => {
    setAsked(null);
  });
  const { action } = item;
  const href = hrefOf(item);
  return (
    <li>
      <div className="attention-what">
        <span className="row">
          <Badge state={item.state} tone={item.state === "Dead letters" ? "warn" : undefined} />
          <span className="faint">{item.kind}</span>
          {href === undefined ? (
            <strong>
              <Clip text={item.name} />
            </strong>
          ) : (
            <NavLink className="attention-name" href={href}>
              <Clip text={item.name} />
            </NavLink>
          )}
          {item.since !== null && (
            <span className="faint small">
              <Time at={item.since} />
            </span>
          )}
        </span>
        <p>
          <Clip text={item.reason} lines={3} />
        </p>
        {item.remedy !== "" && (
          <p className="faint small">
            <Sentence text={item.remedy} />
          </p>
        )}
      </div>
      {action !== null && (
        <Button
          busy={mend.isPending}
          onClick={() => {
            if (action.confirm === null) mend.mutate(action);
            else setAsked(action);
          }}
        >
          {action.label}
        </Button>
      )}
      {action?.confirm != null && (
        <ConfirmDialog
          title={action.label}
          open={asked !== null}
          onClose={() => {
            setAsked(null);
          }}
          onConfirm={() => {
            mend.mutate(action);
          }}
          confirm={action.label}
          typed={action.confirm}
          busy={mend.isPending}
        >
          <p>
            <Clip text={item.reason} lines={8} />
          </p>
          <p>{item.remedy}</p>
        </ConfirmDialog>
      )}
    </li>
  );
}

function hrefOf({ kind, name, state }: Attention): string | undefined {
  switch (kind) {
    case "table":
      return paths.table(name, state === "Dead letters" ? { tab: "dead-letters" } : undefined);
    case "statement":
      return paths.statement(name);
    case "catalog":
      return paths.integration("catalogs", name);
    case "export":
      return paths.export(name);
    case "process":
      return undefined;
  }
}
