import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "@/api/act";
import { produce, schemasQuery, type NewMessage, type TopicSchemas } from "@/api/topics";
import { Button, IconButton } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { CheckField, SelectField, TextArea, TextField } from "@/components/Form";
import { ErrorNotice, Spinner } from "@/components/Notices";
import { formOf, isJson, jsonOf, problemOf, type FormField } from "@/lib/schema-form";

interface Props {
  name: string;
  partitions: readonly number[];
  open: boolean;
  onClose: () => void;
}

/** Writes one message: by a form that is made of its schema, as JSON, or as text where there is no schema. */
export function Produce({ open, onClose, ...rest }: Props) {
  return (
    <Dialog title="Produce a message" open={open} onClose={onClose} wide>
      <Loaded {...rest} onClose={onClose} />
    </Dialog>
  );
}

function Loaded({ name, ...rest }: Omit<Props, "open">) {
  const schemas = useQuery(schemasQuery(name));
  if (schemas.isPending) return <Spinner />;
  if (schemas.data === undefined)
    return (
      <div className="dialog-body">
        <ErrorNotice error={schemas.error} retry={() => void schemas.refetch()} />
      </div>
    );
  return <ProduceForm name={name} schemas={schemas.data} {...rest} />;
}

type Header = readonly [string, string];

/** What was typed for a key or a value. */
interface Typed {
  fields: Readonly<Record<string, string>>;
  /** As text: JSON where there is a schema; null while the form's fields are used. */
  text: string | null;
}

const NOTHING: Typed = { fields: {}, text: null };

function ProduceForm({ name, partitions, schemas, onClose }: Omit<Props, "open"> & { schemas: TopicSchemas }) {
  const [key, setKey] = useState(NOTHING);
  const [value, setValue] = useState(NOTHING);
  const [isTombstone, setTombstone] = useState(false);
  const [partition, setPartition] = useState("");
  const [headers, setHeaders] = useState<readonly Header[]>([]);
  const keyPart = partOf(schemas.key);
  const valuePart = partOf(schemas.value);
  const send = useAct({
    run: () => {
      const body: NewMessage = {
        tombstone: isTombstone,
        headers: headers.filter(([header]) => header !== "").map(([header, text]) => ({ name: header, text })),
        ...(partition === "" ? {} : { partition: Number(partition) }),
        ...contentOf("key", keyPart, key),
        ...(isTombstone ? {} : contentOf("value", valuePart, value)),
      };
      return produce(name, body);
    },
    done: (at) => `Written: partition ${at.partition}, offset ${at.offset}`,
    refresh: [["topic", name]],
    quiet: true,
  });
  const isReady = isComplete(keyPart, key, true) && (isTombstone || isComplete(valuePart, value, false));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate();
      }}
    >
      <div className="dialog-body">
        <PartFields title="Key" part={keyPart} typed={key} onChange={setKey} />
        <CheckField
          label="A tombstone"
          hint="A key without a value: it ends the rows of its key."
          checked={isTombstone}
          onChange={setTombstone}
        />
        {!isTombstone && <PartFields title="Value" part={valuePart} typed={value} onChange={setValue} />}
        <Headers headers={headers} onChange={setHeaders} />
        <SelectField
          label="Partition"
          value={partition}
          onChange={setPartition}
          options={[
            { value: "", label: "By the key" },
            ...partitions.map((one) => ({ value: String(one), label: `Partition ${one}` })),
          ]}
        />
        {send.isError && <ErrorNotice error={send.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>{send.isSuccess ? "Close" : "Cancel"}</Button>
        <Button type="submit" kind="primary" icon="send" disabled={!isReady} busy={send.isPending}>
          {send.isSuccess ? "Send another" : "Send"}
        </Button>
      </footer>
    </form>
  );
}

interface Part {
  /** The schema's kind; null where none is registered. */
  type: string | null;
  form: readonly FormField[] | null;
}

function partOf(subject: TopicSchemas["key"]): Part {
  const newest = subject?.versions[0];
  if (newest === undefined) return { type: null, form: null };
  return { type: newest.type, form: formOf(newest.type, newest.text) };
}

function textOf(part: Part, typed: Typed): string {
  if (typed.text !== null) return typed.text;
  if (part.form === null) return "";
  return Object.keys(typed.fields).length === 0 && part.form.every((field) => field.initial === "") ? "" : jsonOf(part.form, typed.fields);
}

function contentOf(name: "key" | "value", part: Part, typed: Typed): Partial<NewMessage> {
  const text = textOf(part, typed);
  if (name === "key" && text === "") return {};
  if (part.type === null) return name === "key" ? { key: text, key_format: "plain" } : { value: text, value_format: "plain" };
  return name === "key" ? { key_json: text } : { value_json: text };
}

function isComplete(part: Part, typed: Typed, mayBeEmpty: boolean): boolean {
  const text = textOf(part, typed);
  if (text === "") return mayBeEmpty || part.type === null;
  if (part.type === null) return true;
  if (typed.text === null && part.form !== null)
    return part.form.every((field) => problemOf(field, typed.fields[field.name] ?? field.initial) === undefined);
  return isJson(text);
}

interface PartProps {
  title: "Key" | "Value";
  part: Part;
  typed: Typed;
  onChange: (typed: Typed) => void;
}

function PartFields({ title, part, typed, onChange }: PartProps) {
  const { form } = part;
  if (part.type === null || form === null || typed.text !== null) {
    const text = typed.text ?? "";
    return (
      <div className="produce-part">
        <div className="row">
          <h3>{title}</h3>
          <span className="faint small">{part.type === null ? "no schema: as text" : `${part.type}, as JSON`}</span>
          <span className="spacer" />
          {form !== null && (
            <Button
              small
              kind="quiet"
              onClick={() => {
                onChange({ ...typed, text: null });
              }}
            >
              Use the form
            </Button>
          )}
        </div>
        <TextArea
          label={part.type === null ? `${title} as text` : `${title} as JSON`}
          value={text}
          rows={title === "Key" ? 2 : 7}
          onChange={(said) => {
            onChange({ ...typed, text: said });
          }}
          error={part.type !== null && text !== "" && !isJson(text) ? "It is no JSON." : undefined}
        />
      </div>
    );
  }
  return (
    <div className="produce-part">
      <div className="row">
        <h3>{title}</h3>
        <span className="faint small">{part.type}</span>
        <span className="spacer" />
        <Button
          small
          kind="quiet"
          onClick={() => {
            onChange({ ...typed, text: jsonOf(form, typed.fields) });
          }}
        >
          Edit as JSON
        </Button>
      </div>
      <div className="produce-fields">
        {form.map((field) => (
          <OneField
            key={field.name}
            field={field}
            typed={typed.fields[field.name] ?? field.initial}
            wasTyped={field.name in typed.fields}
            onChange={(text) => {
              onChange({ ...typed, fields: { ...typed.fields, [field.name]: text } });
            }}
          />
        ))}
      </div>
    </div>
  );
}

interface OneFieldProps {
  field: FormField;
  typed: string;
  wasTyped: boolean;
  onChange: (text: string) => void;
}

function OneField({ field, typed, wasTyped, onChange }: OneFieldProps) {
  const { name, kind, optional, hint, choices } = field;
  const error = wasTyped ? problemOf(field, typed) : undefined;
  const common = { label: name, value: typed, onChange, error };
  switch (kind) {
    case "boolean":
    case "choice": {
      const values = kind === "boolean" ? ["true", "false"] : choices;
      return (
        <SelectField {...common} options={[{ value: "", label: optional ? "–" : "Choose" }, ...values.map((value) => ({ value, label: value }))]} />
      );
    }
    case "json":
      return <TextArea {...common} hint={hint} optional={optional} rows={2} />;
    case "number":
    case "text":
      return <TextField {...common} hint={hint} optional={optional} inputMode={kind === "number" ? "decimal" : "text"} />;
  }
}

function Headers({ headers, onChange }: { headers: readonly Header[]; onChange: (headers: readonly Header[]) => void }) {
  const set = (at: number, header: Header): void => {
    onChange(headers.map((one, index) => (index === at ? header : one)));
  };
  return (
    <div className="produce-part">
      <div className="row">
        <h3>Headers</h3>
        <span className="spacer" />
        <Button
          small
          icon="plus"
          onClick={() => {
            onChange([...headers, ["", ""]]);
          }}
        >
          Add a header
        </Button>
      </div>
      {headers.map(([name, text], index) => (
        <div className="produce-header" key={index}>
          <input
            aria-label="The header’s name"
            placeholder="Name"
            value={name}
            onChange={(event) => {
              set(index, [event.target.value, text]);
            }}
          />
          <input
            aria-label="The header’s text"
            placeholder="Text"
            value={text}
            onChange={(event) => {
              set(index, [name, event.target.value]);
            }}
          />
          <IconButton
            icon="trash"
            label="Remove the header"
            onClick={() => {
              onChange(headers.filter((_, at) => at !== index));
            }}
          />
        </div>
      ))}
    </div>
  );
}
