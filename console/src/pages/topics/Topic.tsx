import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useAct } from "@/api/act";
import { useCan } from "@/api/session";
import { useTableState } from "@/api/status";
import { deleteTopic, topicQuery, type Topic as TopicFacts } from "@/api/topics";
import { Badge, Tag } from "@/components/Badge";
import { Button, ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { ConfirmDialog } from "@/components/Dialog";
import { Count, Stat, Stats } from "@/components/Figures";
import { Icon } from "@/components/Icon";
import { Menu } from "@/components/Menu";
import { NavLink, useGo } from "@/components/NavLink";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page, Panel, Tabs } from "@/components/Page";
import { plural } from "@/lib/format";
import { paths } from "@/lib/paths";
import { Messages } from "./Messages";
import { Produce } from "./Produce";
import { Schemas } from "./Schemas";
import "./topics.css";

/** One topic: its messages, schemas, partitions and configuration. */
export function Topic() {
  const { name = "" } = useParams({ strict: false });
  const topic = useQuery(topicQuery(name));
  const table = useTableState(name);
  const can = useCan();
  const [producing, setProducing] = useState(false);
  if (topic.isPending) return <Spinner />;
  if (topic.data === undefined)
    return (
      <Page title={name} from={{ label: "Topics", href: paths.topics() }}>
        <ErrorNotice error={topic.error} retry={() => void topic.refetch()} />
      </Page>
    );
  const facts = topic.data;
  const records = facts.offsets.reduce((sum, one) => sum + one.end - one.earliest, 0);
  return (
    <Page
      title={name}
      from={{ label: "Topics", href: paths.topics() }}
      beside={
        <>
          {facts.internal && <Tag>internal</Tag>}
          {table !== undefined && (
            <NavLink href={paths.table(name)} title="To its table" className="topic-table">
              <Icon name="tables" size={14} />
              <Badge state={table.state} title={table.reason} />
            </NavLink>
          )}
        </>
      }
      about={
        <>
          <Count value={records} /> records in {plural(facts.partitions.length, "partition")}
        </>
      }
      actions={
        <>
          {can("writer", name) && !facts.internal && (
            <Button
              icon="send"
              onClick={() => {
                setProducing(true);
              }}
            >
              Produce
            </Button>
          )}
          {can("writer", name) && table === undefined && !facts.internal && (
            <ButtonLink kind="primary" icon="tables" href={paths.enableTable(name)}>
              Enable as table
            </ButtonLink>
          )}
          {can("admin", name) && !facts.internal && <More name={name} />}
        </>
      }
    >
      {topic.isError && <ErrorNotice error={topic.error} />}
      <Tabs
        label={`Parts of topic ${name}`}
        items={[
          { id: "messages", label: "Messages", panel: () => <Messages name={name} partitions={facts.partitions} /> },
          { id: "schema", label: "Schema", panel: () => <Schemas name={name} /> },
          { id: "partitions", label: "Partitions", count: facts.partitions.length, panel: () => <Partitions topic={facts} /> },
          { id: "configuration", label: "Configuration", panel: () => <Configuration topic={facts} /> },
        ]}
      />
      <Produce
        name={name}
        partitions={facts.partitions}
        open={producing}
        onClose={() => {
          setProducing(false);
        }}
      />
    </Page>
  );
}

function More({ name }: { name: string }) {
  const [asked, setAsked] = useState(false);
  const go = useGo();
  const remove = useAct({
    run: () => deleteTopic(name),
    done: () => `Topic ${name} is deleted`,
    refresh: [["topics"]],
    quiet: true,
    then: () => {
      go(paths.topics(), { replace: true });
    },
  });
  return (
    <>
      <Menu
        label="More"
        button={<Icon name="more" />}
        items={[
          {
            label: "Delete the topic",
            icon: "trash",
            danger: true,
            onSelect: () => {
              setAsked(true);
            },
          },
        ]}
      />
      <ConfirmDialog
        title="Delete the topic"
        open={asked}
        onClose={() => {
          setAsked(false);
        }}
        onConfirm={() => {
          remove.mutate();
        }}
        confirm="Delete the topic"
        typed={name}
        busy={remove.isPending}
        error={remove.error}
      >
        <p>
          All records of <Clip text={name} /> are deleted from Kafka, and nothing brings them back. What its table has stays.
        </p>
      </ConfirmDialog>
    </>
  );
}

type Reach = TopicFacts["offsets"][number];

const PARTITION_COLUMNS: readonly Column<Reach>[] = [
  { id: "partition", header: "Partition", cell: (row) => row.partition, sort: (row) => -row.partition },
  { id: "earliest", header: "First offset", align: "right", cell: (row) => <Count value={row.earliest} />, sort: (row) => row.earliest },
  { id: "end", header: "End", align: "right", cell: (row) => <Count value={row.end} />, sort: (row) => row.end },
  {
    id: "records",
    header: "Records",
    align: "right",
    cell: (row) => <Count value={row.end - row.earliest} />,
    sort: (row) => row.end - row.earliest,
  },
];

function Partitions({ topic }: { topic: TopicFacts }) {
  const counts = topic.offsets.map((one) => one.end - one.earliest);
  const largest = Math.max(0, ...counts);
  return (
    <>
      <Panel>
        <Stats>
          <Stat label="Partitions">{topic.partitions.length}</Stat>
          <Stat label="Records" hint="The sum of end minus first offset; what Kafka compacted is counted too.">
            <Count value={counts.reduce((sum, count) => sum + count, 0)} />
          </Stat>
          <Stat label="Largest partition">
            <Count value={largest} />
          </Stat>
        </Stats>
      </Panel>
      <DataTable
        label="Partitions"
        rows={topic.offsets}
        columns={PARTITION_COLUMNS}
        rowKey={(row) => String(row.partition)}
        sorted="-partition"
        param="p"
      />
    </>
  );
}

const SETTING_COLUMNS: readonly Column<readonly [string, string]>[] = [
  { id: "name", header: "Setting", cell: ([name]) => <Clip text={name} mono />, sort: ([name]) => name, search: ([name]) => name },
  { id: "value", header: "Value", cell: ([, value]) => <Clip text={value} mono lines={3} />, search: ([, value]) => value },
];

function Configuration({ topic }: { topic: TopicFacts }) {
  return (
    <DataTable
      label="What is set on the topic"
      rows={Object.entries(topic.config)}
      columns={SETTING_COLUMNS}
      rowKey={([name]) => name}
      sorted="name"
      param="c"
      empty={
        <EmptyState title="Nothing is set on this topic" icon="settings">
          Everything is as the broker’s own settings say.
        </EmptyState>
      }
    />
  );
}
