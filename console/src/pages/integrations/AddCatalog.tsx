import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "@/api/act";
import { addCatalog, CATALOGS } from "@/api/catalogs";
import { storageListQuery } from "@/api/storage";
import { Button, ButtonLink } from "@/components/Button";
import { CodeBlock } from "@/components/CodeBlock";
import { SelectField, TextField, Tiles } from "@/components/Form";
import { useGo } from "@/components/NavLink";
import { ErrorNotice } from "@/components/Notices";
import { Page, Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { useSearchParam } from "@/lib/search";
import { catalogCommand, catalogRequest, FIELDS, isCatalogKind, KIND_NAMES, missing, type Answers, type CatalogField } from "./catalogs";

const KINDS = [
  {
    value: "glue",
    label: KIND_NAMES.glue,
    description: "Iceberg tables for Athena, Redshift, EMR and whatever else asks Glue.",
  },
  { value: "unity", label: KIND_NAMES.unity, description: "Delta tables for Databricks, or another Unity Catalog." },
  { value: "rest", label: KIND_NAMES.rest, description: "Iceberg tables for any catalog that can register them." },
] as const;

/** The form that adds an outside catalog. */
export function AddCatalog() {
  const [wanted, choose] = useSearchParam("kind", "glue");
  const kind = isCatalogKind(wanted) ? wanted : "glue";
  const [name, setName] = useState("");
  const [answers, setAnswers] = useState<Answers>({});
  const go = useGo();
  const add = useAct({
    run: () => addCatalog(catalogRequest(kind, name, answers)),
    done: (added) => `${added.name} is added.`,
    refresh: [CATALOGS],
    quiet: true,
    then: (added) => {
      const tab = added.kind === "glue" && "role_arn" in added.options ? "?tab=policies" : "";
      go(`${paths.integration("catalogs", added.name)}${tab}`, { replace: true });
    },
  });
  const lacking = missing(kind, name, answers);
  const field = (one: CatalogField) => (
    <CatalogInput
      key={one.option}
      field={one}
      value={answers[one.option] ?? ""}
      onChange={(text) => {
        setAnswers({ ...answers, [one.option]: text });
      }}
    />
  );
  return (
    <Page
      title="Add a catalog"
      from={{ label: "Integrations", href: paths.integrations() }}
      about="Tables are found there too, and are kept up to date. Only entries are made: the rows stay where they are."
    >
      <form
        className="adding"
        onSubmit={(event) => {
          event.preventDefault();
          if (lacking.length === 0) add.mutate();
        }}
      >
        <Panel>
          <div className="form">
            <Tiles label="What it is" value={kind} onChange={choose} tiles={KINDS} />
            <TextField
              label="Name"
              value={name}
              onChange={setName}
              hint="What it is called here."
              placeholder={{ glue: "athena", unity: "databricks", rest: "partner" }[kind]}
              required
            />
            {FIELDS[kind].filter((one) => !one.rare).map(field)}
            <details>
              <summary>More options</summary>
              <div className="form">{FIELDS[kind].filter((one) => one.rare).map(field)}</div>
            </details>
            {add.error !== null && <ErrorNotice title="It was not added" error={add.error} />}
            <div className="row">
              <Button type="submit" kind="primary" disabled={lacking.length > 0} busy={add.isPending}>
                Add the catalog
              </Button>
              <ButtonLink href={paths.integrations()}>Cancel</ButtonLink>
              {lacking.length > 0 && <span className="faint small">Still missing: {lacking.join(", ")}</span>}
            </div>
          </div>
        </Panel>
        <aside className="stack">
          <CodeBlock label="The same in a terminal" text={catalogCommand(kind, name, answers)} />
          <Panel title="What comes next">
            <p className="faint small">{NEXT[kind]}</p>
          </Panel>
        </aside>
      </form>
    </Page>
  );
}

const NEXT = {
  glue: "It is Pending until Glue has answered, then Connected. With a role, paste its trust policy and the publisher's policy into AWS first: both are shown when it is added, and it is tried again until they are there.",
  unity:
    "It stays Pending until the first table with the Delta format is enabled, and is Connected with it. The client needs USE CATALOG, USE SCHEMA, CREATE SCHEMA (or a schema that is there), CREATE TABLE, and CREATE EXTERNAL TABLE on an external location that covers the tables.",
  rest: "It is Pending until the catalog has answered, then Connected. Tables are registered there, and dropped from there without their files.",
} as const;

function CatalogInput({ field, value, onChange }: { field: CatalogField; value: string; onChange: (text: string) => void }) {
  const storages = useQuery({ ...storageListQuery, enabled: field.option === "storage" }).data ?? [];
  const hint = field.hint === undefined ? {} : { hint: field.hint };
  if (field.option === "storage")
    return (
      <SelectField
        label={field.label}
        value={value}
        onChange={onChange}
        options={[
          { value: "", label: "none" },
          ...storages.flatMap((one) =>
            one.name === null || one.role_arn === null ? [] : [{ value: one.name, label: one.name }],
          ),
        ]}
      />
    );
  return (
    <TextField
      label={field.label}
      optional={field.required !== true}
      value={value}
      onChange={onChange}
      required={field.required === true}
      {...(field.placeholder === undefined ? {} : { placeholder: field.placeholder })}
      {...hint}
    />
  );
}
