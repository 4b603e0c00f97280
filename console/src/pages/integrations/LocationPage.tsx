import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "@/api/act";
import { removeStorage, STORAGE, storagePolicyQuery, storageQuery, testStorage, type ShownStorage } from "@/api/storage";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Command } from "@/components/CodeBlock";
import { ConfirmDialog } from "@/components/Dialog";
import { Facts } from "@/components/Figures";
import { TextField } from "@/components/Form";
import { NavLink, useGo } from "@/components/NavLink";
import { ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { Page, Panel, Tabs } from "@/components/Page";
import { plural } from "@/lib/format";
import { paths } from "@/lib/paths";
import { shellWord } from "@/lib/quote";
import { Policies } from "./Policies";

const FROM = { label: "Integrations", href: paths.integrations({ tab: "storage" }) };

/** A storage location: how it is reached, what lies there, and what IAM must allow. */
export function LocationPage({ name }: { name: string }) {
  const found = useQuery(storageQuery(name));
  if (found.data === undefined && found.error === null) return <Spinner />;
  if (found.data === undefined)
    return (
      <Page title={name} from={FROM}>
        <ErrorNotice error={found.error} retry={() => void found.refetch()} />
      </Page>
    );
  return <Shown location={found.data} name={name} />;
}

function Shown({ location, name }: { location: ShownStorage; name: string }) {
  const test = useAct({ run: () => testStorage(name), quiet: true });
  return (
    <Page
      title={name}
      from={FROM}
      about={<Clip text={location.uri} mono />}
      actions={
        <>
          <Button
            icon="check"
            busy={test.isPending}
            onClick={() => {
              test.mutate();
            }}
          >
            Test
          </Button>
          <Remove name={name} location={location} />
        </>
      }
    >
      {test.isSuccess && (
        <Notice tone="good" title="It works">
          <p>An object was written there, written again (which was refused, as it must be), read, listed and removed.</p>
        </Notice>
      )}
      {test.error !== null && <ErrorNotice title="The test failed" error={test.error} />}
      <Tabs
        label="Storage location"
        items={[
          { id: "details", label: "Details", panel: () => <Details location={location} name={name} /> },
          { id: "policies", label: "Policies", panel: () => <PoliciesOf name={name} hasRole={location.role_arn !== null} /> },
        ]}
      />
    </Page>
  );
}

function Details({ location, name }: { location: ShownStorage; name: string }) {
  return (
    <div className="columns">
      <Panel title="How it is reached">
        <Facts
          items={[
            ["Store", location.endpoint === null ? "AWS S3" : <Clip key="endpoint" text={location.endpoint} mono />],
            ["Region", location.region ?? "the environment's"],
            ["Addresses", location.path_style ? "the bucket is in the path" : "the bucket is in the host name"],
            ["Role", location.role_arn === null ? "Headgate's own keys" : <Clip key="role" text={location.role_arn} mono />],
            ...(location.external_id === null
              ? []
              : [["External id", <Clip key="external" text={location.external_id} mono />] as const]),
            ["Encryption", { none: "the bucket's", s3: "S3's own keys", kms: "a KMS key" }[location.encryption]],
            ...(location.kms_key === null ? [] : [["KMS key", <Clip key="kms" text={location.kms_key} mono />] as const]),
          ]}
        />
      </Panel>
      <Panel title="What uses it">
        {location.tables.length === 0 && location.catalogs.length === 0 ? (
          <div className="stack">
            <p className="faint">No table lies there yet. Choose it when you enable one:</p>
            <div>
              <Command text={`headgate table enable TOPIC --storage ${shellWord(name)}`} />
            </div>
          </div>
        ) : (
          <ul className="plain">
            {location.tables.map((topic) => (
              <li key={topic}>
                Table{" "}
                <NavLink href={paths.table(topic)}>
                  <Clip text={topic} />
                </NavLink>
              </li>
            ))}
            {location.catalogs.map((catalog) => (
              <li key={catalog}>
                Catalog{" "}
                <NavLink href={paths.integration("catalogs", catalog)}>
                  <Clip text={catalog} />
                </NavLink>
                , asked as its role
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </div>
  );
}

function PoliciesOf({ name, hasRole }: { name: string; hasRole: boolean }) {
  const [principal, setPrincipal] = useState("");
  const policies = useQuery(storagePolicyQuery(name, principal.trim()));
  return (
    <div className="stack">
      {hasRole && (
        <TextField
          label="What Headgate runs as"
          optional
          value={principal}
          onChange={setPrincipal}
          placeholder="arn:aws:iam::123456789012:user/headgate"
          hint="The user or role that the trust policy lets in."
        />
      )}
      {policies.error !== null ? (
        <ErrorNotice error={policies.error} />
      ) : policies.data === undefined ? (
        <Spinner />
      ) : (
        <Policies policies={policies.data} />
      )}
    </div>
  );
}

function Remove({ name, location }: { name: string; location: ShownStorage }) {
  const [asked, ask] = useState(false);
  const go = useGo();
  const remove = useAct({
    run: () => removeStorage(name),
    done: () => `${name} is forgotten.`,
    refresh: [[...STORAGE]],
    quiet: true,
    then: () => {
      go(FROM.href, { replace: true });
    },
  });
  const used = location.tables.length + location.catalogs.length;
  return (
    <>
      <Button
        icon="trash"
        onClick={() => {
          ask(true);
        }}
      >
        Remove
      </Button>
      <ConfirmDialog
        title="Remove the storage location"
        open={asked}
        onClose={() => {
          ask(false);
        }}
        onConfirm={() => {
          remove.mutate();
        }}
        confirm="Remove"
        typed={name}
        busy={remove.isPending}
        error={remove.error}
      >
        <p>
          {used > 0
            ? `It is used by ${plural(used, "table or catalog", "tables and catalogs")}: while it is, it stays.`
            : "Headgate forgets it. What lies there stays there."}
        </p>
      </ConfirmDialog>
    </>
  );
}
