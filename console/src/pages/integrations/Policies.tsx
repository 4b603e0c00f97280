import type { StoragePolicies } from "@/api/storage";
import { CodeBlock } from "@/components/CodeBlock";

const WORDS = {
  trust: ["Trust policy", "Of the role: who may take it on."],
  access: ["Access policy", "Of the role, or of Headgate's own keys where there is no role."],
  assume: ["Policy of what Headgate runs as", "So that it may take on the role."],
  reader: ["Readers' policy", "For engines that read with keys of their own."],
} as const;

/** What IAM must allow for a storage location, to be pasted into AWS. */
export function Policies({ policies }: { policies: StoragePolicies }) {
  return (
    <div className="stack">
      {(["trust", "access", "assume", "reader"] as const).map((which) => {
        const policy = policies[which];
        if (policy === undefined) return null;
        const [label, about] = WORDS[which];
        return (
          <div key={which} className="policy">
            <p className="hint">{about}</p>
            <CodeBlock label={label} text={JSON.stringify(policy, null, 2)} />
          </div>
        );
      })}
    </div>
  );
}
