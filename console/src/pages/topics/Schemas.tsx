import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { schemasQuery, type SchemaVersion, type Subject } from "@/api/topics";
import { Tag } from "@/components/Badge";
import { visible } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { Select } from "@/components/Form";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { diffLines, readable } from "@/lib/diff";
import { useSearchParam } from "@/lib/search";

/** The schemas of a topic's values and keys: each version, and what it changed. */
export function Schemas({ name }: { name: string }) {
  const schemas = useQuery(schemasQuery(name));
  if (schemas.isPending) return <Spinner />;
  if (schemas.data === undefined) return <ErrorNotice error={schemas.error} retry={() => void schemas.refetch()} />;
  const { key, value } = schemas.data;
  if (key === null && value === null)
    return (
      <div className="table-frame">
        <EmptyState title="No schema is registered for this topic" icon="topics">
          A producer that registers <code>{visible(name)}-value</code> in the schema registry makes it appear here. Without a schema
          the topic can still be a table: of text, of JSON with declared columns, or of bytes.
        </EmptyState>
      </div>
    );
  return (
    <>
      {value !== null && <SubjectPanel title="Value" subject={value} param="value" />}
      {key !== null && <SubjectPanel title="Key" subject={key} param="key" />}
    </>
  );
}

function SubjectPanel({ title, subject, param }: { title: string; subject: Subject; param: string }) {
  const newest = subject.versions[0];
  const [said, choose] = useSearchParam(param, String(newest?.version ?? ""));
  const [against, compare] = useSearchParam(`${param}-against`);
  const shown = subject.versions.find((one) => String(one.version) === said) ?? newest;
  const other = subject.versions.find((one) => String(one.version) === against);
  if (shown === undefined) return null;
  const others = subject.versions.filter((one) => one !== shown);
  return (
    <Panel
      title={title}
      about={
        <>
          <bdi>{visible(subject.subject)}</bdi>
          {subject.compatibility !== null && ` · compatibility ${subject.compatibility}`}
        </>
      }
      actions={
        <>
          <Tag>{shown.type}</Tag>
          <Select
            aria-label={`Version of the ${title.toLowerCase()}’s schema`}
            value={String(shown.version)}
            onChange={choose}
            options={subject.versions.map((one) => ({ value: String(one.version), label: `Version ${one.version} (id ${one.id})` }))}
          />
          {others.length > 0 && (
            <Select
              aria-label="Compare with"
              value={other === undefined ? "" : String(other.version)}
              onChange={compare}
              options={[
                { value: "", label: "Compare with …" },
                ...others.map((one) => ({ value: String(one.version), label: `against version ${one.version}` })),
              ]}
            />
          )}
        </>
      }
    >
      {other !== undefined && other !== shown ? (
        <Difference before={other} after={shown} />
      ) : (
        <CodeBlock label={`Version ${shown.version}`} text={readable(shown.text)} />
      )}
      {shown.references.length > 0 && (
        <p className="faint small">
          Refers to{" "}
          {shown.references.map((one) => (
            <bdi key={one.name}>
              {visible(one.name)} ({visible(one.subject)}, version {one.version}){" "}
            </bdi>
          ))}
        </p>
      )}
    </Panel>
  );
}

/** What one version changed of another: lines that came and went. */
function Difference({ before, after }: { before: SchemaVersion; after: SchemaVersion }) {
  const lines = useMemo(() => diffLines(readable(before.text), readable(after.text)), [before, after]);
  const added = lines.filter((line) => line.kind === "added").length;
  const removed = lines.filter((line) => line.kind === "removed").length;
  return (
    <figure className="code-block">
      <figcaption>
        <span>
          Version {before.version} → {after.version}: {added} lines came, {removed} went
        </span>
      </figcaption>
      {/* Long lines are scrolled to by keyboard too. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} className="diff">
        {lines.map((line, index) => (
          <span key={index} className={`diff-line ${line.kind}`}>
            <span className="diff-mark" aria-label={line.kind === "same" ? undefined : line.kind}>
              {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : " "}
            </span>
            <bdi>{visible(line.text)}</bdi>
          </span>
        ))}
      </pre>
    </figure>
  );
}
