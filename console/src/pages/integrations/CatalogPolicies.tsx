import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { catalogPolicyQuery, PURPOSES, type Purpose, type ShownCatalog } from "@/api/catalogs";
import { CodeBlock } from "@/components/CodeBlock";
import { TextField, Tiles } from "@/components/Form";
import { ErrorNotice, Spinner } from "@/components/Notices";
import { useSearchParam } from "@/lib/search";

const WORDS: Readonly<Record<Purpose, { label: string; description: string }>> = {
  trust: { label: "Trust", description: "Of the role: Headgate may assume it." },
  publisher: { label: "Publisher", description: "IAM's, of Headgate's user or the role." },
  reader: { label: "Readers in Glue", description: "IAM's, of who queries." },
  bucket: { label: "Bucket", description: "Of the bucket: its readers get and list the tables." },
  kms: { label: "KMS key", description: "Of the key that files are encrypted with." },
};

const ACCOUNT = /^\d{12}$/;

/** The policies to paste into AWS, one at a time. */
export function CatalogPolicies({ catalog }: { catalog: ShownCatalog }) {
  const hasRole = "role_arn" in catalog.options && Boolean(catalog.options.role_arn);
  const purposes = PURPOSES.filter((purpose) => purpose !== "trust" || hasRole);
  const [wanted, choose] = useSearchParam("policy", purposes[0]);
  const [account, setAccount] = useState("");
  const purpose = purposes.find((one) => one === wanted) ?? "publisher";
  const wrong = account !== "" && !ACCOUNT.test(account);
  const policy = useQuery({ ...catalogPolicyQuery(catalog.name, purpose, wrong ? "" : account), enabled: !wrong });
  return (
    <div className="stack">
      <Tiles
        label="The policy"
        value={purpose}
        onChange={choose}
        tiles={purposes.map((value) => ({ value, ...WORDS[value] }))}
      />
      <TextField
        label="AWS account"
        optional
        value={account}
        onChange={setAccount}
        placeholder="123456789012"
        inputMode="numeric"
        className="account"
        error={wrong ? "An account has 12 digits." : undefined}
        hint="Without one, AWS is asked who Headgate is."
      />
      {policy.error !== null ? (
        <ErrorNotice error={policy.error} retry={() => void policy.refetch()} />
      ) : policy.data === undefined ? (
        !wrong && <Spinner label="Asking AWS" />
      ) : (
        <CodeBlock label={`${WORDS[purpose].label} policy`} text={JSON.stringify(policy.data, null, 2)} />
      )}
    </div>
  );
}
