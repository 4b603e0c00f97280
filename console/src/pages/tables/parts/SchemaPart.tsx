import { useQuery } from "@tanstack/react-query";
import { schemasQuery, type SchemaField, type SchemaVersion } from "@/api/tables";
import { Tag } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Time } from "@/components/Figures";
import { Select } from "@/components/Form";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { plural } from "@/lib/format";
import { useSearchParam } from "@/lib/search";

const COLUMNS: readonly Column<SchemaField>[] = [
  {
    id: "field",
    header: "Field",
    cell: (field) => (
      <span className="schema-field" style={{ paddingInlineStart: field.depth * 18 }}>
        <Clip text={field.name} mono />
        {field.identifier && <Tag title="Tells rows apart">key</Tag>}
      </span>
    ),
    search: (field) => `${field.path} ${field.type} ${field.doc ?? ""}`,
  },
  { id: "id", header: "Id", align: "right", cell: (field) => field.id, sort: (field) => field.id },
  { id: "type", header: "Type", cell: (field) => <Clip text={field.type} mono /> },
  { id: "required", header: "Required", cell: (field) => (field.required ? "yes" : "no") },
  { id: "doc", header: "About", wideOnly: true, cell: (field) => (field.doc === null ? "" : <Clip text={field.doc} lines={2} />) },
];

/** Columns with their field ids, and how they came to be. */
export function SchemaPart({ topic }: { topic: string }) {
  const { data, error, refetch } = useQuery({ ...schemasQuery(topic), retry: false });
  const [wanted, choose] = useSearchParam("schema");
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Spinner />;
  const newest = data.versions.find((one) => one.schema_id === data.schema_id) ?? data.versions[0];
  const shown = data.versions.find((one) => String(one.schema_id) === wanted) ?? newest;
  if (shown === undefined)
    return (
      <EmptyState title="No schema yet" icon="tables">
        The table gets its columns from the topic&apos;s schema, with its first records at the latest.
      </EmptyState>
    );
  return (
    <>
      <DataTable
        label="Fields"
        rows={shown.fields}
        columns={COLUMNS}
        rowKey={(field) => String(field.id)}
        searchLabel="Search fields"
        param="field"
        tools={
          <Select
            aria-label="Version of the schema"
            value={String(shown.schema_id)}
            onChange={(id) => {
              choose(id === String(data.schema_id) ? "" : id);
            }}
            options={data.versions.map((one) => ({
              value: String(one.schema_id),
              label: one.schema_id === data.schema_id ? `Schema ${one.schema_id}, the present one` : `Schema ${one.schema_id}`,
            }))}
          />
        }
      />
      <Panel title="History" about="Columns follow the topic's schemas by their field ids: a rename keeps its values.">
        <ol className="schema-history">
          {data.versions.map((version) => (
            <VersionLine key={version.schema_id} version={version} />
          ))}
        </ol>
      </Panel>
    </>
  );
}

function VersionLine({ version }: { version: SchemaVersion }) {
  return (
    <li>
      <div className="row">
        <strong>Schema {version.schema_id}</strong>
        <span className="faint small">
          {plural(version.fields.length, "field")}
          {version.committed_at !== null && (
            <>
              {" · first rows "}
              <Time at={version.committed_at / 1000} />
            </>
          )}
        </span>
      </div>
      <ul className="schema-changes">
        {version.changes.map((change) => (
          <li key={change} className={change.startsWith("added") ? "added" : change.startsWith("dropped") ? "dropped" : "changed"}>
            <Clip text={change} mono lines={2} />
          </li>
        ))}
        {version.changes.length === 0 && <li className="faint">The first that is kept.</li>}
      </ul>
    </li>
  );
}
