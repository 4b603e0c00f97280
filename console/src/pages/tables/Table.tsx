import { useParams } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "@/api/client";
import { useCan } from "@/api/session";
import { tableQuery, type ShownTable } from "@/api/tables";
import { useStatus, useTableState } from "@/api/status";
import { Badge, Tag } from "@/components/Badge";
import { ButtonLink } from "@/components/Button";
import { EmptyState, ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { Page, Tabs, type TabItem } from "@/components/Page";
import { shellWord } from "@/lib/quote";
import { paths } from "@/lib/paths";
import { Catalogs } from "./parts/Catalogs";
import { DeadLetters } from "./parts/DeadLetters";
import { Files } from "./parts/Files";
import { Maintenance } from "./parts/Maintenance";
import { Overview } from "./parts/Overview";
import { Read } from "./parts/Read";
import { SchemaPart } from "./parts/SchemaPart";
import { Settings } from "./parts/Settings";
import { Snapshots } from "./parts/Snapshots";
import { Stopped } from "./parts/Stopped";
import { TableActions } from "./parts/TableActions";
import "./tables.css";

/** One table: how it stands, what it is made of, and what can be done with it. */
export function Table() {
  const { name = "" } = useParams({ strict: false });
  const { data, error, refetch } = useQuery({ ...tableQuery(name), retry: false });
  const live = useTableState(name);
  const from = { label: "Tables", href: paths.tables() };
  if (error instanceof ApiError && error.status === 404) return <NoTable topic={name} from={from} />;
  if (data === undefined)
    return (
      <Page title={name} from={from}>
        {error === null ? <Spinner /> : <ErrorNotice error={error} retry={() => void refetch()} />}
      </Page>
    );
  return <Shown table={newest(data, live)} from={from} />;
}

/** What the stream says is the newest of what is both in the list and on the page. */
function newest(table: ShownTable, live: ReturnType<typeof useTableState>): ShownTable {
  if (live === undefined || live.updated_at < table.updated_at) return table;
  return { ...table, ...live };
}

interface From {
  label: string;
  href: string;
}

function Shown({ table, from }: { table: ShownTable; from: From }) {
  const cluster = useStatus().data?.cluster ?? "";
  const can = useCan();
  const { topic, detail, spec } = table;
  const letters = table.dead_letters_count ?? 0;
  const items: TabItem[] = [
    { id: "overview", label: "Overview", panel: () => <Overview table={table} /> },
    { id: "schema", label: "Schema", panel: () => <SchemaPart topic={topic} /> },
    { id: "snapshots", label: "Snapshots", panel: () => <Snapshots table={table} cluster={cluster} /> },
    { id: "files", label: "Partitions and files", panel: () => <Files topic={topic} /> },
    { id: "maintenance", label: "Maintenance", panel: () => <Maintenance table={table} /> },
    { id: "dead-letters", label: "Dead letters", count: letters > 0 ? letters : undefined, panel: () => <DeadLetters table={table} cluster={cluster} /> },
    { id: "catalogs", label: "Catalogs", count: table.catalogs.length > 0 ? table.catalogs.length : undefined, panel: () => <Catalogs table={table} /> },
    { id: "settings", label: "Settings", panel: () => <Settings key={table.topic} table={table} writes={can("writer", topic)} /> },
    { id: "read", label: "How to read it", panel: () => <Read table={table} cluster={cluster} /> },
  ];
  return (
    <Page
      title={topic}
      from={from}
      beside={
        <>
          <Badge state={table.state} title={table.reason} />
          {spec.formats.map((format) => (
            <Tag key={format}>{format === "iceberg" ? "Iceberg" : "Delta"}</Tag>
          ))}
          <Tag>{detail.mode ?? spec.mode}</Tag>
        </>
      }
      actions={<TableActions table={table} />}
    >
      <Stopped table={table} />
      {table.warnings.map((warning) => (
        <Notice key={warning} tone="warn">
          <bdi>{warning}</bdi>
        </Notice>
      ))}
      <Tabs label="About the table" items={items} />
    </Page>
  );
}

function NoTable({ topic, from }: { topic: string; from: From }) {
  const can = useCan();
  return (
    <Page title={topic} from={from}>
      <EmptyState
        title="This topic is no table"
        icon="tables"
        command={`headgate table enable ${shellWord(topic)}`}
        action={
          can("writer", topic) && (
            <ButtonLink kind="primary" href={paths.enableTable(topic)}>
              Enable it
            </ButtonLink>
          )
        }
      >
        It was not enabled, or it was disabled. Rows that it had are still there, unless they were purged.
      </EmptyState>
    </Page>
  );
}
