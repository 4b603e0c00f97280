import type { Definition, ShownExport } from "@/api/exports";
import { Tag } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { Facts } from "@/components/Figures";
import { NavLink } from "@/components/NavLink";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";

/** What an export is: its query, its schedule, what may leave, and where it goes. */
export function DefinitionOf({ export: one }: { export: ShownExport }) {
  // What is as it is by default is not in it.
  const spec: Definition = one.spec;
  const masks = Object.entries(spec.masks ?? {});
  return (
    <div className="stack">
      <CodeBlock label="Query" text={spec.sql} />
      <div className="columns">
        <Panel title="When">
          <Facts
            items={[
              ["Period", spec.period ?? "week"],
              ["Schedule", <Clip key="schedule" text={one.schedule} mono />],
              ["Zone", <Clip key="zone" text={one.zone} />],
              ["Missed runs", { all: "all are made up for", last: "the last is made up for", none: "left out" }[spec.catch_up ?? "all"]],
              ["Retries", spec.retries ?? 5],
            ]}
          />
        </Panel>
        <Panel title="File">
          <Facts
            items={[
              ["Format", <Tag key="format">{spec.format ?? "csv"}</Tag>],
              ["Compression", spec.compression ?? "none"],
              ["Name", <Clip key="name" text={spec.file_name ?? "{export}_{from}_{to}"} mono />],
              [
                "Storage",
                spec.storage ? (
                  <NavLink key="storage" href={paths.integration("storage", spec.storage)}>
                    <Clip text={spec.storage} />
                  </NavLink>
                ) : (
                  "the folder of exports"
                ),
              ],
              ["Folder", spec.folder ? <Clip key="folder" text={spec.folder} mono /> : "–"],
              ["Kept", keptWords(spec)],
            ]}
          />
        </Panel>
        <Panel title="What may leave">
          <Facts
            items={[
              ["Columns", spec.columns ? <Names key="columns" names={spec.columns} /> : "all of the query"],
              ["Personal", spec.personal?.length ? <Names key="personal" names={spec.personal} /> : "none named"],
              ["A column looks personal", spec.strict ? "the run stops" : "a warning"],
              ...masks.map(([column, mask]) => [column, <MaskOf key={column} mask={mask} />] as const),
            ]}
          />
        </Panel>
        <Panel title="Who is told">
          <Facts
            items={[
              ["Mail", spec.mail ? <Names key="mail" names={spec.mail.to} /> : "nobody"],
              ["Webhook", spec.webhook ? <Clip key="webhook" text={spec.webhook.url} mono /> : "none"],
            ]}
          />
        </Panel>
      </div>
    </div>
  );
}

function Names({ names }: { names: readonly string[] }) {
  return (
    <span className="row">
      {names.map((name) => (
        <Clip key={name} text={name} mono />
      ))}
    </span>
  );
}

function MaskOf({ mask }: { mask: NonNullable<Definition["masks"]>[string] }) {
  return (
    <span className="row">
      <Tag>{mask.mask}</Tag>
      {mask.secret && (
        <span className="faint small">
          with the secret <Clip text={mask.secret} />
        </span>
      )}
    </span>
  );
}

export function keptWords({ keep_files, keep_for }: Pick<Definition, "keep_files" | "keep_for">): string {
  const words = [
    ...(keep_files ? [`the newest ${keep_files}`] : []),
    ...(keep_for ? [`for ${keep_for}`] : []),
  ];
  return words.length === 0 ? "all files" : words.join(", ");
}
