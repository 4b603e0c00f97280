import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "@/api/act";
import { CREDENTIALS, credentialsQuery, revokeCredential, type Credential } from "@/api/credentials";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Command } from "@/components/CodeBlock";
import { CopyButton } from "@/components/CopyButton";
import { ConfirmDialog } from "@/components/Dialog";
import { Facts, Time } from "@/components/Figures";
import { NavLink } from "@/components/NavLink";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page, Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { shellWord } from "@/lib/quote";
import { grantWords } from "./grants";

const FROM = { label: "Integrations", href: paths.integrations({ tab: "credentials" }) };

/** A credential: what it may do, and how it is revoked. Its secret is not here, nor anywhere. */
export function CredentialPage({ name }: { name: string }) {
  const found = useQuery(credentialsQuery);
  if (found.data === undefined && found.error !== null)
    return (
      <Page title={name} from={FROM}>
        <ErrorNotice error={found.error} retry={() => void found.refetch()} />
      </Page>
    );
  if (found.data === undefined) return <Spinner />;
  const credential = findCredential(found.data, name);
  if (credential === undefined)
    return (
      <Page title={name} from={FROM}>
        <EmptyState icon="lock" title="There is no such credential" command="headgate credentials list">
          It goes by its name or its client id.
        </EmptyState>
      </Page>
    );
  return <Shown credential={credential} />;
}

/** By client id, or by name: the one of that name that is not revoked comes first. */
export function findCredential(all: readonly Credential[], name: string): Credential | undefined {
  const named = all.filter((one) => one.name === name);
  return all.find((one) => one.client_id === name) ?? named.find((one) => one.revoked_at === null) ?? named.at(-1);
}

function Shown({ credential }: { credential: Credential }) {
  return (
    <Page
      title={credential.name}
      from={FROM}
      beside={<Badge state={credential.revoked_at === null ? "Active" : "Revoked"} />}
      actions={credential.revoked_at === null && <Revoke credential={credential} />}
    >
      <div className="columns">
        <Panel title="Credential">
          <Facts
            items={[
              [
                "Client id",
                <span key="client" className="row">
                  <Clip text={credential.client_id} mono />
                  <CopyButton text={credential.client_id} what="the client id" />
                </span>,
              ],
              ["Client secret", <span key="secret" className="faint">shown once, when it was created</span>],
              ["Created", <Time key="created" at={credential.created_at} />],
              ...(credential.revoked_at === null
                ? []
                : [["Revoked", <Time key="revoked" at={credential.revoked_at} />] as const]),
              [
                "What it did",
                <NavLink key="audit" href={paths.activity({ tab: "audit", who: credential.client_id })}>
                  Audit trail
                </NavLink>,
              ],
            ]}
          />
        </Panel>
        <Panel title="What it may do">
          <ul className="plain">
            {credential.grants.map((grant) => (
              <li key={grant}>
                <Clip text={grantWords(grant)} />
              </li>
            ))}
          </ul>
        </Panel>
      </div>
      {credential.revoked_at === null && (
        <p className="faint">
          In a terminal: <Command text={`headgate credentials revoke ${shellWord(credential.name)}`} />
        </p>
      )}
    </Page>
  );
}

function Revoke({ credential }: { credential: Credential }) {
  const [asked, ask] = useState(false);
  const revoke = useAct({
    run: () => revokeCredential(credential.client_id),
    done: () => `${credential.name} is revoked.`,
    refresh: [[...CREDENTIALS]],
    quiet: true,
    then: () => {
      ask(false);
    },
  });
  return (
    <>
      <Button
        icon="trash"
        onClick={() => {
          ask(true);
        }}
      >
        Revoke
      </Button>
      <ConfirmDialog
        title="Revoke the credential"
        open={asked}
        onClose={() => {
          ask(false);
        }}
        onConfirm={() => {
          revoke.mutate();
        }}
        confirm="Revoke"
        typed={credential.name}
        busy={revoke.isPending}
        error={revoke.error}
      >
        <p>
          From the next request on its secret and its tokens open nothing, and browsers that it has signed in are signed out. This is
          not taken back: make another credential instead.
        </p>
      </ConfirmDialog>
    </>
  );
}
