import { useCan } from "@/api/session";
import type { ShownTable } from "@/api/tables";
import { Badge } from "@/components/Badge";
import { ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Time } from "@/components/Figures";
import { EmptyState } from "@/components/Notices";
import { paths } from "@/lib/paths";

type Publication = ShownTable["catalogs"][number];

const TONES: Record<string, "good" | "info" | "bad" | "idle"> = { Synced: "good", Pending: "info", Failed: "bad", "Not applicable": "idle" };

const COLUMNS: readonly Column<Publication>[] = [
  { id: "catalog", header: "Catalog", cell: (one) => <Clip text={one.catalog} />, sort: (one) => one.catalog },
  {
    id: "state",
    header: "State",
    cell: (one) => (
      <div className="tables-state">
        <Badge state={one.state} {...(TONES[one.state] === undefined ? {} : { tone: TONES[one.state] })} title={one.reason} />
        {one.reason !== "" && (
          <span className="faint small">
            <Clip text={one.reason} lines={2} />
          </span>
        )}
      </div>
    ),
    sort: (one) => one.state,
  },
  { id: "name", header: "Its name there", cell: (one) => (one.name === null ? "" : <Clip text={one.name} mono />) },
  { id: "published", header: "Published", align: "right", cell: (one) => <Time at={one.published_at} />, sort: (one) => one.published_at },
];

/** Outside catalogs that the table is published to, and how it stands in each. */
export function Catalogs({ table }: { table: ShownTable }) {
  const can = useCan();
  return (
    <DataTable
      label="Outside catalogs"
      rows={table.catalogs}
      columns={COLUMNS}
      rowKey={(one) => one.catalog}
      {...(can("admin") ? { href: (one: Publication) => paths.integration("catalogs", one.catalog) } : {})}
      param="catalogs"
      empty={
        <EmptyState
          title="In no outside catalog"
          icon="integrations"
          command="headgate catalog add glue athena --region eu-west-1"
          action={
            can("admin") && (
              <ButtonLink kind="primary" href={paths.addIntegration("catalogs")}>
                Add a catalog
              </ButtonLink>
            )
          }
        >
          Every table is in Headgate&apos;s own Iceberg catalog. It can be published to AWS Glue, Unity Catalog and other REST catalogs too.
        </EmptyState>
      }
    />
  );
}
