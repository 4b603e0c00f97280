import { useEffect, useState } from "react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { createCredential, CREDENTIALS, type NewCredential } from "@/api/credentials";
import { useStatus } from "@/api/status";
import { Button, ButtonLink, IconButton } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { CopyButton } from "@/components/CopyButton";
import { Facts } from "@/components/Figures";
import { SelectField, TextField, Tiles } from "@/components/Form";
import { ErrorNotice, Notice } from "@/components/Notices";
import { Page, Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { credentialCommand, credentialRequest, grantWords, ROLES, type GrantRole, type GrantRow } from "./grants";

const LIST = paths.integrations({ tab: "credentials" });
const FROM = { label: "Integrations", href: LIST };

const ROLE_TILES = [
  { value: "reader", label: "Reader", description: "Sees and queries tables, topics and statements." },
  { value: "writer", label: "Writer", description: "Also enables and alters tables, and runs statements." },
  { value: "admin", label: "Admin", description: "Also purges, and, of everything, integrations and settings." },
  { value: "engine", label: "Engine", description: "Writes managed tables: for the engine of another Headgate." },
] as const satisfies readonly { value: GrantRole; label: string; description: string }[];

/** The form that creates a credential; then its secret, once. */
export function AddCredential() {
  const [made, setMade] = useState<NewCredential>();
  return made === undefined ? <CreateForm onMade={setMade} /> : <Secret credential={made} />;
}

function CreateForm({ onMade }: { onMade: (made: NewCredential) => void }) {
  const [name, setName] = useState("");
  const [rows, setRows] = useState<readonly GrantRow[]>([{ role: "reader", namespace: "", table: "" }]);
  const client = useQueryClient();
  const create = useMutation({
    mutationFn: () => createCredential(credentialRequest(name, rows)),
    // The answer has the secret: no cache keeps it.
    gcTime: 0,
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: CREDENTIALS });
      onMade(made);
    },
  });
  const setRow = (at: number, part: Partial<GrantRow>): void => {
    setRows(rows.map((row, index) => (index === at ? { ...row, ...part } : row)));
  };
  const [first, ...others] = rows;
  const ready = name.trim() !== "";
  if (first === undefined) return null;
  return (
    <Page
      title="Create a credential"
      from={FROM}
      about="A client id and a secret, for a person or a program. What no grant covers is not there for it."
    >
      <form
        className="adding"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !create.isPending) create.mutate();
        }}
      >
        <Panel>
          <div className="form">
            <TextField label="Name" value={name} onChange={setName} placeholder="notebook" hint="Who or what it is for." required />
            <Tiles
              label="Role"
              value={first.role}
              onChange={(role) => {
                setRow(0, { role });
              }}
              tiles={ROLE_TILES}
            />
            <Patterns row={first} onChange={(part) => {
                setRow(0, part);
              }}
            />
            {others.map((row, index) => (
              // Rows have no name of their own, and are only added and taken away.
              <fieldset className="grant" key={index}>
                <legend>Also</legend>
                <div className="grant-head">
                  <SelectField
                    label="Role"
                    value={row.role}
                    onChange={(role) => {
                      setRow(index + 1, { role });
                    }}
                    options={ROLES.map((value) => ({ value, label: value }))}
                  />
                  <IconButton
                    icon="trash"
                    label="Take this grant away"
                    onClick={() => {
                      setRows(rows.filter((_, at) => at !== index + 1));
                    }}
                  />
                </div>
                <Patterns row={row} onChange={(part) => {
                    setRow(index + 1, part);
                  }}
                />
              </fieldset>
            ))}
            <div>
              <Button
                small
                icon="plus"
                onClick={() => {
                  setRows([...rows, { role: "reader", namespace: "", table: "" }]);
                }}
              >
                Another grant
              </Button>
            </div>
            {create.error !== null && <ErrorNotice title="It was not created" error={create.error} />}
            <div className="row">
              <Button type="submit" kind="primary" disabled={!ready} busy={create.isPending}>
                Create
              </Button>
              <ButtonLink href={LIST}>Cancel</ButtonLink>
            </div>
          </div>
        </Panel>
        <aside className="stack">
          <CodeBlock label="The same in a terminal" text={credentialCommand(name, rows)} />
          <Panel title="It may be">
            <ul className="plain">
              {[first, ...others].map((row, index) => (
                <li key={index}>
                  <Clip text={grantWords(`${row.role}:${row.namespace || "*"}:${row.table || "*"}`)} />
                </li>
              ))}
            </ul>
          </Panel>
        </aside>
      </form>
    </Page>
  );
}

function Patterns({ row, onChange }: { row: GrantRow; onChange: (part: Partial<GrantRow>) => void }) {
  const cluster = useStatus().data?.cluster ?? "local";
  return (
    <div className="pair">
      <TextField
        label="Namespaces"
        optional
        value={row.namespace}
        onChange={(namespace) => {
          onChange({ namespace });
        }}
        placeholder="*"
        hint={`Topics and their tables are in ${cluster}.`}
      />
      <TextField
        label="Topics and tables"
        optional
        value={row.table}
        onChange={(table) => {
          onChange({ table });
        }}
        placeholder="*"
        hint="Such as shop.*; * and ? stand for what may vary."
      />
    </div>
  );
}

/** The secret, which is in this page's memory alone: who leaves it sees it no more. */
function Secret({ credential }: { credential: NewCredential }) {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent): void => {
      event.preventDefault();
    };
    addEventListener("beforeunload", ask);
    return () => {
      removeEventListener("beforeunload", ask);
    };
  }, []);
  return (
    <Page title={credential.name} from={FROM} about={credential.grants.map(grantWords).join(", ")}>
      <Notice tone="warn" title="Copy the secret now">
        <p>It is shown this once. Headgate keeps only its hash: a secret that is lost is replaced by another credential.</p>
      </Notice>
      <Panel title="Credential">
        <Facts
          items={[
            ["Client id", <Value key="id" text={credential.client_id} what="the client id" />],
            ["Client secret", <Value key="secret" text={credential.client_secret} what="the client secret" />],
          ]}
        />
      </Panel>
      <CodeBlock
        label="For commands on another machine"
        text={`export HEADGATE_URL=${location.origin}\nexport HEADGATE_CLIENT_ID=${credential.client_id}\nexport HEADGATE_CLIENT_SECRET=${credential.client_secret}`}
      />
      <div>
        <ButtonLink kind="primary" href={LIST}>
          I have copied it
        </ButtonLink>
      </div>
    </Page>
  );
}

function Value({ text, what }: { text: string; what: string }) {
  return (
    <span className="secret-value">
      <code>{text}</code>
      <CopyButton text={text} label="Copy" what={what} />
    </span>
  );
}
