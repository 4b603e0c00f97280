import { useState } from "react";
import { useAct } from "@/api/act";
import { useTakeTable, wants, type ShownTable } from "@/api/tables";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { Facts } from "@/components/Figures";
import { CheckField, SelectField, TextArea, TextField } from "@/components/Form";
import { ErrorNotice } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { NONE } from "@/lib/format";
import { alterable, alterCommand, optionsOf, renameProblem } from "../alter";
import { METADATA } from "../wanted";

/** What is wanted of the table: what can be changed while it runs, and what its rows were made by. */
export function Settings({ table, writes }: { table: ShownTable; writes: boolean }) {
  const ending = table.desired === "disabled" || table.desired === "purged";
  return (
    <>
      {writes && !ending && <AlterForm table={table} />}
      <Wanted table={table} />
    </>
  );
}

function AlterForm({ table }: { table: ShownTable }) {
  const { topic, spec } = table;
  const take = useTakeTable();
  const [form, setForm] = useState(() => alterable(spec));
  const set = (part: Partial<typeof form>): void => {
    setForm((before) => ({ ...before, ...part }));
  };
  const options = optionsOf(spec, form);
  const changed = Object.keys(options).length > 0;
  const renameWrong = renameProblem(form.renames);
  const alter = useAct({
    run: () => wants.alter(topic, options),
    done: () => `${topic} is altered.`,
    refresh: [["table", topic], ["status"]],
    then: (found) => {
      take(found);
      setForm(alterable(found.spec));
    },
    quiet: true,
  });
  return (
    <Panel title="Alter" about="Holds from the next batch on; the table runs meanwhile.">
      <form
        className="alter"
        onSubmit={(event) => {
          event.preventDefault();
          if (changed && renameWrong === undefined) alter.mutate();
        }}
      >
        <div className="alter-fields">
          <TextField label="Freshness" hint="How old a record may be when it is in the table: 5s, 1m." value={form.freshness} onChange={(freshness) => { set({ freshness }); }} />
          <SelectField
            label="Formats"
            value={form.formats}
            options={[
              { value: "iceberg", label: "Iceberg" },
              { value: "delta", label: "Delta" },
              { value: "iceberg,delta", label: "Iceberg and Delta" },
              ...(["iceberg", "delta", "iceberg,delta"].includes(form.formats) ? [] : [{ value: form.formats, label: form.formats }]),
            ]}
            onChange={(formats) => { set({ formats }); }}
          />
          <SelectField
            label="On a bad record"
            value={form.onError}
            options={[
              { value: "suspend", label: "Suspend the table" },
              { value: "log", label: "Keep it as a dead letter" },
              { value: "skip", label: "Leave it out" },
            ]}
            onChange={(onError) => { set({ onError }); }}
          />
          {form.onError === "log" && (
            <TextField label="Dead letters go to" optional placeholder={`${topic}.dlq`} value={form.deadLetters} onChange={(deadLetters) => { set({ deadLetters }); }} />
          )}
          <SelectField
            label="Records without a value"
            value={form.tombstones}
            options={[
              { value: "bad", label: "Are bad records of an append table" },
              { value: "skip", label: "Are left out" },
            ]}
            onChange={(tombstones) => { set({ tombstones }); }}
          />
          <TextField label="Event time" optional hint="The default layout's column." value={form.eventTime} onChange={(eventTime) => { set({ eventTime }); }} />
          <TextField label="Readers" optional hint="spark, duckdb, athena, …" value={form.readers} onChange={(readers) => { set({ readers }); }} />
          <TextArea
            label="Partitions"
            rows={3}
            hint="A field on each line: day(c), bucket(16, c), truncate(4, c), c; or default, or none. Rows that are there stay where they are."
            value={form.partition}
            onChange={(partition) => { set({ partition }); }}
          />
          <TextArea
            label="Rename columns"
            optional
            rows={3}
            placeholder="old=new"
            hint="A column keeps its id, and so its values."
            error={renameWrong}
            value={form.renames}
            onChange={(renames) => { set({ renames }); }}
          />
        </div>
        <fieldset>
          <legend className="alter-legend">Metadata columns</legend>
          <div className="wizard-checks">
            {METADATA.map((one) => (
              <CheckField
                key={one}
                label={one}
                checked={form.metadata.includes(one)}
                onChange={(checked) => {
                  set({ metadata: METADATA.filter((other) => (other === one ? checked : form.metadata.includes(other))) });
                }}
              />
            ))}
          </div>
        </fieldset>
        {changed && <CodeBlock label="The same in a terminal" text={alterCommand(topic, options)} />}
        {alter.error !== null && <ErrorNotice error={alter.error} />}
        <div className="row">
          <Button type="submit" kind="primary" disabled={!changed || renameWrong !== undefined} busy={alter.isPending}>
            Alter
          </Button>
          {changed && (
            <Button kind="quiet" onClick={() => { setForm(alterable(spec)); }}>
              Undo
            </Button>
          )}
        </div>
      </form>
    </Panel>
  );
}

function Wanted({ table }: { table: ShownTable }) {
  const { spec, detail } = table;
  const list = (texts: readonly string[]) => <Clip text={texts.join(", ")} mono lines={2} />;
  return (
    <Panel title="As it was made" about="What rows were made by stays: disable the table with purge and enable it again to change it.">
      <Facts
        items={[
          ["Mode", spec.mode],
          ["Key", spec.key === null ? "Kafka's key, where the mode needs one" : list(spec.key)],
          ["Values", spec.value_format],
          ...(spec.value_columns === null ? [] : ([["Columns of values", list([spec.value_columns])]] as const)),
          ["Keys", spec.key_format],
          ["Record types", spec.record_types],
          ["Envelope", spec.envelope],
          ["Started from", list([table.from])],
          ["Storage", spec.storage === null ? "Managed" : list([spec.storage])],
          ["Format version", detail.format_version ?? spec.format_version ?? NONE],
          ["Partitions", list(detail.partition ?? spec.partition ?? [NONE])],
          ["Why so", detail.partition_reason === undefined ? NONE : list([detail.partition_reason])],
          ["Readers", spec.readers.length > 0 ? list(spec.readers) : "any"],
          ...(Object.keys(spec.renames).length > 0 ? ([["Renamed", list(Object.entries(spec.renames).map(([before, after]) => `${before} → ${after}`))]] as const) : []),
        ]}
      />
    </Panel>
  );
}
