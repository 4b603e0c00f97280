import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { useAct } from "@/api/act";
import { api, unwrap } from "@/api/client";
import { storagesQuery } from "@/api/tables";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { Facts } from "@/components/Figures";
import { ErrorNotice } from "@/components/Notices";
import { useGo } from "@/components/NavLink";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { commandOf, fieldText, isKeyed, names, requestOf, storageOf, yamlOf, type StorageRequest, type Wanted } from "./wanted";

interface Props {
  wanted: Wanted;
  isAdmin: boolean;
  /** Goes back to a step. */
  edit: (index: number) => void;
}

/** All that was chosen, as it would be said in a terminal and in a file; and the button that does it. */
export function Review({ wanted, isAdmin, edit }: Props) {
  const go = useGo();
  const locations = useQuery(storagesQuery(isAdmin && wanted.storage === "bucket")).data;
  const role = locations?.find((one) => one.name === wanted.role);
  const storage = wanted.storage === "bucket" && role !== undefined ? storageOf(wanted, role) : null;
  const request = requestOf(wanted);
  // Launched again after a refusal, a location that was made is not made twice.
  const [made, setMade] = useState<string>();
  const launch = useAct({
    run: async () => {
      if (storage !== null && made !== said(storage)) {
        await unwrap(api.POST("/api/v1/storage", { body: storage }));
        setMade(said(storage));
      }
      return unwrap(api.POST("/api/v1/tables", { body: request }));
    },
    refresh: [["topics"], ["tables"], ["status"], ["storage"]],
    then: () => {
      go(paths.enableTable(wanted.topic, { step: "launched" }), { replace: true });
    },
    quiet: true,
  });
  return (
    <>
      <Panel title="Review">
        <Facts items={facts(wanted)} />
      </Panel>
      <Panel title="The same without the console" about="A command, or a file for headgate apply.">
        <div className="stack">
          <CodeBlock label="Command" text={commandOf(request, storage)} />
          <CodeBlock label="YAML" text={yamlOf(request, storage)} />
        </div>
      </Panel>
      {launch.error !== null && <ErrorNotice title="It was not launched" error={launch.error} />}
      <footer>
        <Button
          onClick={() => {
            edit(3);
          }}
        >
          Back
        </Button>
        <span className="spacer" />
        <Button
          kind="primary"
          icon="play"
          busy={launch.isPending}
          disabled={wanted.storage === "bucket" && storage === null}
          onClick={() => {
            launch.mutate();
          }}
        >
          Launch
        </Button>
      </footer>
    </>
  );
}

function said(storage: StorageRequest): string {
  return JSON.stringify(storage);
}

const FORMATS = { iceberg: "Apache Iceberg", delta: "Delta Lake", both: "Apache Iceberg and Delta Lake, over the same files" };
const MODES = {
  auto: "Upsert if the topic is compacted, else append",
  append: "Append: each record is a row",
  upsert: "Upsert: the last record of a key is its row",
  scd2: "Every version of a key's row",
};
const ERRORS = { suspend: "Suspend the table", skip: "Leave the record out, and count it", log: "Keep it as a dead letter" };

function facts(wanted: Wanted): [string, React.ReactNode][] {
  const text = (value: string) => <Clip text={value} lines={2} />;
  const keyed: [string, React.ReactNode][] =
    isKeyed(wanted.mode) && wanted.mode !== "auto"
      ? [["Key", names(wanted.key).length > 0 ? text(names(wanted.key).join(", ")) : "Kafka's key"]]
      : [];
  const layout =
    wanted.layout === "none"
      ? "None"
      : wanted.layout === "fields"
        ? wanted.partition.map(fieldText).join(", ")
        : wanted.eventTime.trim() === ""
          ? "By day, of the watermark's column or Kafka's timestamp"
          : `By day of ${wanted.eventTime.trim()}`;
  return [
    ["Topic", text(wanted.topic)],
    ["Format", FORMATS[wanted.formats]],
    ["Storage", text(storageText(wanted))],
    ["Rows", MODES[wanted.mode]],
    ...keyed,
    ["Partitions", text(layout)],
    ["Starts at", text(wanted.start)],
    ["Freshness", text(wanted.freshness.trim() || "10s")],
    ["On a bad record", wanted.onError === "log" ? text(`Keep it as a dead letter, in ${wanted.deadLetters.trim() || `${wanted.topic}.dlq`}`) : ERRORS[wanted.onError]],
    ["Metadata columns", wanted.metadata.length > 0 ? wanted.metadata.join(", ") : "None"],
    ["Readers", wanted.readers.length > 0 ? wanted.readers.join(", ") : "Any that know the format's newest version"],
  ];
}

function storageText(wanted: Wanted): string {
  if (wanted.storage === "managed") return "Managed: Headgate's warehouse";
  if (wanted.storage === "named") return wanted.location;
  return `${wanted.bucket.trim()}, as the new location ${wanted.location.trim()}`;
}
