import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "@/api/act";
import { CATALOGS, catalogQuery, removeCatalog, retryCatalog, type Publication, type ShownCatalog } from "@/api/catalogs";
import { ApiError } from "@/api/client";
import { Badge, Tag } from "@/components/Badge";
import { Button, ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { ConfirmDialog } from "@/components/Dialog";
import { Facts, Time } from "@/components/Figures";
import { CheckField } from "@/components/Form";
import { NavLink, useGo } from "@/components/NavLink";
import { EmptyState, ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { Page, Panel, Tabs } from "@/components/Page";
import { EventList } from "@/pages/activity/EventList";
import { plural } from "@/lib/format";
import { paths } from "@/lib/paths";
import { CatalogPolicies } from "./CatalogPolicies";
import { KIND_NAMES } from "./catalogs";
import { reasonOf } from "./states";

const FROM = { label: "Integrations", href: paths.integrations() };

/** An outside catalog: how it stands, the tables in it, and what AWS must allow. */
export function CatalogPage({ name }: { name: string }) {
  const found = useQuery(catalogQuery(name));
  const go = useGo();
  // A catalog that was removed is forgotten when its tables are out.
  const gone = found.error instanceof ApiError && found.error.status === 404;
  if (gone && found.data?.desired === "removed")
    return (
      <Page title={name} from={FROM}>
        <EmptyState
          icon="check"
          title="Removed"
          action={
            <Button
              onClick={() => {
                go(paths.integrations());
              }}
            >
              To the integrations
            </Button>
          }
        >
          Its tables were taken out of it, and it is forgotten.
        </EmptyState>
      </Page>
    );
  if (found.error !== null && (gone || found.data === undefined))
    return (
      <Page title={name} from={FROM}>
        <ErrorNotice error={found.error} retry={() => void found.refetch()} />
      </Page>
    );
  if (found.data === undefined) return <Spinner />;
  return <Shown catalog={found.data} />;
}

function Shown({ catalog }: { catalog: ShownCatalog }) {
  const removing = catalog.desired === "removed";
  return (
    <Page
      title={catalog.name}
      from={FROM}
      beside={<Badge state={removing ? "Removing" : catalog.state} />}
      about={KIND_NAMES[catalog.kind]}
      actions={<Actions catalog={catalog} />}
    >
      <Standing catalog={catalog} />
      <Tabs
        label="Catalog"
        items={[
          { id: "tables", label: "Tables", count: catalog.tables.length, panel: () => <Tables catalog={catalog} /> },
          { id: "details", label: "Details", panel: () => <Details catalog={catalog} /> },
          ...(catalog.kind === "glue"
            ? [{ id: "policies", label: "Policies", panel: () => <CatalogPolicies catalog={catalog} /> }]
            : []),
          { id: "events", label: "Events", panel: () => <EventList events={catalog.events} /> },
        ]}
      />
    </Page>
  );
}

function Standing({ catalog }: { catalog: ShownCatalog }) {
  if (catalog.desired === "removed" || catalog.state === "Pending")
    return (
      <Notice
        title={catalog.desired === "removed" ? "Removing" : "Pending"}
        action={
          catalog.state === "Pending" && catalog.kind === "unity" && catalog.desired !== "removed" ? (
            <ButtonLink small href={paths.enableTable()}>
              Enable a table
            </ButtonLink>
          ) : undefined
        }
      >
        <p>
          <bdi>{reasonOf(catalog)}</bdi>
        </p>
        {catalog.kind === "unity" && catalog.desired !== "removed" && (
          <p className="remedy">It is Connected with the first table that is enabled in the Delta format.</p>
        )}
      </Notice>
    );
  if (catalog.state === "Failed")
    return (
      <Notice tone="bad" title="Failed">
        <p>
          <bdi>{reasonOf(catalog)}</bdi>
        </p>
        <p className="remedy">
          It is tried again by itself. When you have mended what the reason names, try it again at once.
          {catalog.kind === "glue" && " What AWS must allow is under Policies."}
        </p>
      </Notice>
    );
  return null;
}

function Actions({ catalog }: { catalog: ShownCatalog }) {
  const [asked, ask] = useState(false);
  const [force, setForce] = useState(false);
  const go = useGo();
  const refresh = [CATALOGS];
  const retry = useAct({
    run: () => retryCatalog(catalog.name),
    done: () => `${catalog.name} is tried again.`,
    refresh,
  });
  const remove = useAct({
    run: () => removeCatalog(catalog.name, force),
    refresh,
    quiet: true,
    then: () => {
      ask(false);
      if (force) go(paths.integrations(), { replace: true });
    },
  });
  return (
    <>
      {catalog.desired !== "removed" && (
        <Button
          icon="refresh"
          busy={retry.isPending}
          onClick={() => {
            retry.mutate();
          }}
        >
          Try again now
        </Button>
      )}
      <Button
        icon="trash"
        onClick={() => {
          ask(true);
        }}
      >
        Remove
      </Button>
      <ConfirmDialog
        title="Remove the catalog"
        open={asked}
        onClose={() => {
          ask(false);
        }}
        onConfirm={() => {
          remove.mutate();
        }}
        confirm="Remove"
        typed={catalog.name}
        busy={remove.isPending}
        error={remove.error}
      >
        <p>
          {catalog.tables.length === 0
            ? "No tables are published to it."
            : `The entries of ${plural(catalog.tables.length, "table")} are taken out of it: who queries them there finds them no more.`}{" "}
          The tables themselves and their files stay.
        </p>
        <CheckField
          label="Forget it at once"
          hint="Nothing is asked of the catalog: entries that are there stay there. For one that is gone or does not answer."
          checked={force}
          onChange={setForce}
        />
      </ConfirmDialog>
    </>
  );
}

const columns: readonly Column<Publication>[] = [
  {
    id: "topic",
    header: "Table",
    cell: (one) => <Clip text={one.topic} />,
    sort: (one) => one.topic,
    search: (one) => one.topic,
  },
  {
    id: "state",
    header: "State",
    cell: (one) => <Badge state={one.state} title={one.reason} />,
    sort: (one) => one.state,
    search: (one) => `${one.state} ${one.reason}`,
  },
  {
    id: "name",
    header: "Its name there",
    cell: (one) => (one.name === null ? <span className="nothing">–</span> : <Clip text={one.name} mono />),
    sort: (one) => one.name,
    search: (one) => one.name ?? "",
  },
  {
    id: "reason",
    header: "Reason",
    cell: (one) => (one.reason === "" ? <span className="nothing">–</span> : <Clip text={one.reason} lines={3} />),
  },
  {
    id: "published",
    header: "Published",
    cell: (one) => <Time at={one.published_at} />,
    sort: (one) => one.published_at,
    align: "right",
  },
];

function Tables({ catalog }: { catalog: ShownCatalog }) {
  return (
    <DataTable
      label="Tables of the catalog"
      rows={catalog.tables}
      columns={columns}
      rowKey={(one) => one.topic}
      href={(one) => paths.table(one.topic)}
      sorted="topic"
      {...(catalog.tables.length > 8 ? { searchLabel: "Search tables" } : {})}
      empty={
        <EmptyState
          icon="tables"
          title="No tables in it yet"
          action={
            <ButtonLink kind="primary" href={paths.enableTable()}>
              Enable a table
            </ButtonLink>
          }
          command={`headgate table enable TOPIC --formats ${catalog.format === "delta" ? "iceberg,delta" : "iceberg"}`}
        >
          Every table with the format {catalog.format} is published to it as soon as it is enabled.
        </EmptyState>
      }
    />
  );
}

function Details({ catalog }: { catalog: ShownCatalog }) {
  const { names, storage, ...options } = { storage: null, ...catalog.options } as Record<string, unknown>;
  const renamed = Object.entries((names ?? {}) as Readonly<Record<string, string>>);
  return (
    <div className="columns">
      <Panel title="Catalog">
        <Facts
          items={[
            ["Kind", KIND_NAMES[catalog.kind]],
            ["Format", <Tag key="format">{catalog.format}</Tag>],
            ["Published in", <Clip key="place" text={catalog.place} mono />],
            ["State since", <Time key="since" at={catalog.since} />],
            ["Added", <Time key="created" at={catalog.created_at} />],
          ]}
        />
      </Panel>
      <Panel title="How it is reached" about="As it was said when it was added; secrets by their names.">
        <Facts
          items={[
            ...Object.entries(options).map(
              ([option, value]) => [option.replaceAll("_", " "), <Clip key={option} text={String(value)} mono />] as const,
            ),
            ...(typeof storage === "string"
              ? [
                  [
                    "as the role of storage",
                    <NavLink key="storage" href={paths.integration("storage", storage)}>
                      <Clip text={storage} />
                    </NavLink>,
                  ] as const,
                ]
              : []),
            ...renamed.map(([topic, name]) => [topic, <Clip key={topic} text={name} mono />] as const),
          ]}
        />
        {Object.keys(options).length === 0 && typeof storage !== "string" && (
          <p className="faint">With what AWS's tools find in the engine's environment.</p>
        )}
      </Panel>
    </div>
  );
}
