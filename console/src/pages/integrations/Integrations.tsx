import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { catalogsQuery, type Catalog } from "@/api/catalogs";
import { credentialsQuery, type Credential } from "@/api/credentials";
import { storageListQuery, type Storage } from "@/api/storage";
import { useCan } from "@/api/session";
import { Badge, Tag } from "@/components/Badge";
import { ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Time } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page, Tabs } from "@/components/Page";
import { paths } from "@/lib/paths";
import { useSearchParam } from "@/lib/search";
import { AdminsOnly } from "@/shell/AdminsOnly";
import { KIND_NAMES } from "./catalogs";
import { countsOf, reasonOf } from "./states";
import { grantWords } from "./grants";
import "./integrations.css";

const ADD = {
  catalogs: "Add a catalog",
  storage: "Add a storage location",
  credentials: "Create a credential",
} as const;

/** Where tables are published, where they lie, and who may come in. */
export function Integrations() {
  const [tab] = useSearchParam("tab", "catalogs");
  const can = useCan();
  const kind = tab === "storage" || tab === "credentials" ? tab : "catalogs";
  if (!can("admin")) return <AdminsOnly title="Integrations" what="Integrations" />;
  return (
    <Page
      title="Integrations"
      about="Catalogs that tables are published to, buckets where they lie, and clients that may come in."
      actions={
        <ButtonLink kind="primary" icon="plus" href={paths.addIntegration(kind)}>
          {ADD[kind]}
        </ButtonLink>
      }
    >
      <Lists />
    </Page>
  );
}

function Lists() {
  const catalogs = useQuery(catalogsQuery);
  const storage = useQuery(storageListQuery);
  const credentials = useQuery(credentialsQuery);
  return (
    <Tabs
      label="Integrations"
      items={[
        {
          id: "catalogs",
          label: "Catalogs",
          count: catalogs.data?.length,
          panel: () => <Listed query={catalogs} list={(rows) => <Catalogs rows={rows} />} />,
        },
        {
          id: "storage",
          label: "Storage",
          count: storage.data?.length,
          panel: () => <Listed query={storage} list={(rows) => <Locations rows={rows} />} />,
        },
        {
          id: "credentials",
          label: "Credentials",
          count: credentials.data?.filter((one) => one.revoked_at === null).length,
          panel: () => <Listed query={credentials} list={(rows) => <Credentials rows={rows} />} />,
        },
      ]}
    />
  );
}

interface Asked<Row> {
  data: readonly Row[] | undefined;
  error: unknown;
  refetch: () => unknown;
}

function Listed<Row>({ query, list }: { query: Asked<Row>; list: (rows: readonly Row[]) => React.ReactNode }) {
  if (query.data !== undefined) return list(query.data);
  if (query.error !== null) return <ErrorNotice error={query.error} retry={() => void query.refetch()} />;
  return <Spinner />;
}

const catalogColumns: readonly Column<Catalog>[] = [
  {
    id: "name",
    header: "Name",
    cell: (one) => <Clip text={one.name} />,
    sort: (one) => one.name,
    search: (one) => one.name,
  },
  {
    id: "state",
    header: "State",
    cell: (one) => <Badge state={one.desired === "removed" ? "Removing" : one.state} title={reasonOf(one)} />,
    sort: (one) => one.state,
    search: (one) => `${one.state} ${one.reason}`,
  },
  {
    id: "kind",
    header: "Kind",
    cell: (one) => KIND_NAMES[one.kind],
    sort: (one) => KIND_NAMES[one.kind],
    search: (one) => `${one.kind} ${KIND_NAMES[one.kind]}`,
  },
  { id: "format", header: "Format", cell: (one) => <Tag>{one.format}</Tag>, sort: (one) => one.format },
  {
    id: "place",
    header: "Published in",
    cell: (one) => <Clip text={one.place} mono />,
    sort: (one) => one.place,
    search: (one) => one.place,
  },
  {
    id: "tables",
    header: "Tables",
    cell: (one) => countsOf(one.tables.map((table) => table.state)) || <span className="nothing">none yet</span>,
    sort: (one) => one.tables.length,
  },
  {
    id: "since",
    header: "Since",
    cell: (one) => <Time at={one.since} />,
    sort: (one) => one.since,
    align: "right",
    wideOnly: true,
  },
];

function Catalogs({ rows }: { rows: readonly Catalog[] }) {
  return (
    <DataTable
      label="Catalogs"
      rows={rows}
      columns={catalogColumns}
      rowKey={(one) => one.name}
      href={(one) => paths.integration("catalogs", one.name)}
      sorted="name"
      param="c"
      {...(rows.length > 8 ? { searchLabel: "Search catalogs" } : {})}
      empty={
        <EmptyState
          icon="integrations"
          title="No outside catalogs yet"
          command="headgate catalog add glue athena --region eu-west-1"
          action={
            <ButtonLink kind="primary" icon="plus" href={paths.addIntegration("catalogs")}>
              {ADD.catalogs}
            </ButtonLink>
          }
        >
          Tables can be found in AWS Glue, Unity Catalog or another Iceberg REST catalog too. Only entries are made
          there: the rows stay where they are.
        </EmptyState>
      }
    />
  );
}

const locationColumns: readonly Column<Storage>[] = [
  {
    id: "name",
    header: "Name",
    cell: (one) => <Clip text={one.name ?? ""} />,
    sort: (one) => one.name,
    search: (one) => one.name ?? "",
  },
  {
    id: "uri",
    header: "Location",
    cell: (one) => <Clip text={one.uri} mono />,
    sort: (one) => one.uri,
    search: (one) => one.uri,
  },
  {
    id: "store",
    header: "Store",
    cell: (one) => <Clip text={one.endpoint ?? `AWS${one.region === null ? "" : ` ${one.region}`}`} />,
    search: (one) => one.endpoint ?? one.region ?? "",
  },
  {
    id: "role",
    header: "Reached with",
    cell: (one) => (one.role_arn === null ? "Headgate's own keys" : <Clip text={one.role_arn} mono />),
    search: (one) => one.role_arn ?? "",
  },
  {
    id: "encryption",
    header: "Encryption",
    cell: (one) => <Tag title={one.kms_key ?? ""}>{one.encryption === "none" ? "the bucket's" : one.encryption}</Tag>,
    wideOnly: true,
  },
];

function Locations({ rows }: { rows: readonly Storage[] }) {
  return (
    <DataTable
      label="Storage locations"
      rows={rows}
      columns={locationColumns}
      rowKey={(one) => one.uri}
      href={(one) => paths.integration("storage", one.name ?? "")}
      sorted="name"
      param="s"
      {...(rows.length > 8 ? { searchLabel: "Search locations" } : {})}
      empty={
        <EmptyState
          icon="integrations"
          title="Tables lie in the warehouse alone"
          command="headgate storage add archive s3://archive/tables --role arn:aws:iam::123456789012:role/lake"
          action={
            <ButtonLink kind="primary" icon="plus" href={paths.addIntegration("storage")}>
              {ADD.storage}
            </ButtonLink>
          }
        >
          Name a bucket, or a part of one, and choose it when you enable a table.
        </EmptyState>
      }
    />
  );
}

const credentialColumns: readonly Column<Credential>[] = [
  {
    id: "name",
    header: "Name",
    cell: (one) => <Clip text={one.name} />,
    sort: (one) => one.name,
    search: (one) => one.name,
  },
  {
    id: "state",
    header: "State",
    cell: (one) => <Badge state={one.revoked_at === null ? "Active" : "Revoked"} />,
    sort: (one) => (one.revoked_at === null ? "Active" : "Revoked"),
  },
  {
    id: "grants",
    header: "May",
    cell: (one) => <Clip text={one.grants.map(grantWords).join(", ")} />,
    search: (one) => one.grants.join(" "),
  },
  {
    id: "client",
    header: "Client id",
    cell: (one) => <Clip text={one.client_id} mono />,
    search: (one) => one.client_id,
  },
  {
    id: "created",
    header: "Created",
    cell: (one) => <Time at={one.created_at} />,
    sort: (one) => one.created_at,
    align: "right",
  },
];

function Credentials({ rows }: { rows: readonly Credential[] }) {
  const [revoked, showRevoked] = useSearchParam("revoked", "no");
  const active = useMemo(() => rows.filter((one) => one.revoked_at === null), [rows]);
  return (
    <DataTable
      label="Credentials"
      rows={revoked === "yes" ? rows : active}
      columns={credentialColumns}
      rowKey={(one) => one.client_id}
      href={(one) => paths.integration("credentials", one.client_id)}
      sorted="name"
      param="k"
      searchLabel="Search credentials"
      tools={
        active.length < rows.length && (
          <label className="row small">
            <input
              type="checkbox"
              checked={revoked === "yes"}
              onChange={(event) => {
                showRevoked(event.target.checked ? "yes" : "no");
              }}
            />
            Revoked ones too
          </label>
        )
      }
      empty={
        <EmptyState
          icon="lock"
          title="Nobody else may come in yet"
          command="headgate credentials create notebook --role reader"
          action={
            <ButtonLink kind="primary" icon="plus" href={paths.addIntegration("credentials")}>
              {ADD.credentials}
            </ButtonLink>
          }
        >
          A credential opens the catalog, the API and these pages to a person or a program, as far as its role goes.
        </EmptyState>
      }
    />
  );
}
