import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { useAct } from "@/api/act";
import { addStorage, STORAGE, storagePolicyBeforeQuery } from "@/api/storage";
import { Button, ButtonLink } from "@/components/Button";
import { CodeBlock } from "@/components/CodeBlock";
import { CheckField, SelectField, TextField, Tiles } from "@/components/Form";
import { useGo } from "@/components/NavLink";
import { ErrorNotice, Progress } from "@/components/Notices";
import { Page, Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { Policies } from "./Policies";
import {
  EMPTY_LOCATION,
  isComplete,
  locationCommand,
  locationErrors,
  locationRequest,
  newExternalId,
  type LocationForm,
} from "./locations";

const LIST = paths.integrations({ tab: "storage" });

/** The form that adds a storage location. It is tried when it is added: the policies come first. */
export function AddLocation() {
  const [form, setForm] = useState<LocationForm>(EMPTY_LOCATION);
  const set = (part: Partial<LocationForm>): void => {
    setForm((before) => ({ ...before, ...part }));
  };
  const go = useGo();
  const add = useAct({
    run: () => addStorage(locationRequest(form)),
    done: (added) => `${added.name ?? "It"} works, and is added.`,
    refresh: [STORAGE],
    quiet: true,
    then: (added) => {
      go(paths.integration("storage", added.name ?? ""), { replace: true });
    },
  });
  const errors = locationErrors(form);
  const ready = isComplete(form);
  return (
    <Page
      title="Add a storage location"
      from={{ label: "Integrations", href: LIST }}
      about="A bucket, or a part of one, where tables may lie. It must not overlap with the warehouse or another location."
    >
      <form
        className="adding"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) add.mutate();
        }}
      >
        <Panel>
          <div className="form">
            <TextField
              label="Name"
              value={form.name}
              onChange={(name) => {
                set({ name });
              }}
              placeholder="archive"
              hint="Letters, digits, - and _."
              required
            />
            <TextField
              label="Location"
              value={form.uri}
              onChange={(uri) => {
                set({ uri });
              }}
              placeholder="s3://archive/tables"
              error={errors.uri}
              required
            />
            <Tiles
              label="Store"
              value={form.store}
              onChange={(store) => {
                set({ store });
              }}
              tiles={[
                { value: "aws", label: "AWS S3", description: "Reached with a role, or Headgate's own keys." },
                { value: "other", label: "Speaks like S3", description: "MinIO, Ceph, R2 or another, at an address of its own." },
              ]}
            />
            {form.store === "other" && (
              <>
                <TextField
                  label="Endpoint"
                  value={form.endpoint}
                  onChange={(endpoint) => {
                    set({ endpoint });
                  }}
                  placeholder="https://store.example:9000"
                  error={errors.endpoint}
                  required
                />
                <CheckField
                  label="The bucket is in the path"
                  hint="As most stores that are not AWS's want it."
                  checked={form.pathStyle}
                  onChange={(pathStyle) => {
                    set({ pathStyle });
                  }}
                />
              </>
            )}
            <TextField
              label="Region"
              optional
              value={form.region}
              onChange={(region) => {
                set({ region });
              }}
              placeholder="eu-central-1"
            />
            <TextField
              label="IAM role"
              optional
              value={form.roleArn}
              onChange={(roleArn) => {
                set({ roleArn, ...(form.externalId === "" && roleArn !== "" ? { externalId: newExternalId() } : {}) });
              }}
              placeholder="arn:aws:iam::123456789012:role/lake"
              error={errors.roleArn}
              hint="Readers then get keys for one table at a time; without it they bring their own."
            />
            {form.roleArn !== "" && (
              <TextField
                label="External id"
                optional
                value={form.externalId}
                onChange={(externalId) => {
                  set({ externalId });
                }}
                hint="The trust policy asks for it, so that nobody else has Headgate take on the role."
              />
            )}
            <SelectField
              label="Encryption"
              value={form.encryption}
              onChange={(encryption) => {
                set({ encryption });
              }}
              options={[
                { value: "none", label: "as the bucket does" },
                { value: "s3", label: "with S3's own keys" },
                { value: "kms", label: "with a KMS key" },
              ]}
            />
            {form.encryption === "kms" && (
              <TextField
                label="KMS key"
                value={form.kmsKey}
                onChange={(kmsKey) => {
                  set({ kmsKey });
                }}
                placeholder="arn:aws:kms:eu-central-1:123456789012:key/…"
                error={errors.kmsKey}
                required
              />
            )}
            {add.isPending && <Progress label="Writing, reading, listing and removing an object there" />}
            {add.error !== null && <ErrorNotice title="It was not added" error={add.error} />}
            <div className="row">
              <Button type="submit" kind="primary" disabled={!ready} busy={add.isPending}>
                Test and add
              </Button>
              <ButtonLink href={LIST}>Cancel</ButtonLink>
            </div>
          </div>
        </Panel>
        <aside className="stack">
          <CodeBlock label="The same in a terminal" text={locationCommand(form)} />
          {ready ? (
            <PoliciesBefore form={form} />
          ) : (
            <Panel title="Policies">
              <p className="faint small">
                What IAM must allow is shown here when the form is filled in: allow it, then test and add.
              </p>
            </Panel>
          )}
        </aside>
      </form>
    </Page>
  );
}

function PoliciesBefore({ form }: { form: LocationForm }) {
  const [principal, setPrincipal] = useState("");
  const [request, asker] = [useDeferredValue(locationRequest(form)), useDeferredValue(principal)];
  const policies = useQuery({
    ...storagePolicyBeforeQuery(request, asker.trim()),
    placeholderData: (before) => before,
  });
  return (
    <Panel title="Policies" about="Allow these first: the location is tried when it is added.">
      <div className="stack">
        {form.roleArn !== "" && (
          <TextField
            label="What Headgate runs as"
            optional
            value={principal}
            onChange={setPrincipal}
            placeholder="arn:aws:iam::123456789012:user/headgate"
          />
        )}
        {policies.error !== null && <ErrorNotice error={policies.error} />}
        {policies.data !== undefined && <Policies policies={policies.data} />}
      </div>
    </Panel>
  );
}
