import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useCan } from "@/api/session";
import { watchedTopicsQuery, type TopicSummary } from "@/api/topics";
import { Badge, Tag } from "@/components/Badge";
import { Button, IconButton } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Count, Rate } from "@/components/Figures";
import { CheckField } from "@/components/Form";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Page } from "@/components/Page";
import { favourites, toggleFavourite } from "@/lib/favourites";
import { paths } from "@/lib/paths";
import { useSearchParam } from "@/lib/search";
import { useStored } from "@/lib/stored";
import { CreateTopic } from "./CreateTopic";
import "./topics.css";

/** All topics that one may see; favourites first. */
export function Topics() {
  const can = useCan();
  const [internal, setInternal] = useSearchParam("internal");
  const [creating, setCreating] = useState(false);
  const topics = useQuery(watchedTopicsQuery(internal === "yes"));
  const loved = useStored(favourites);
  const rows = useMemo(
    () => [...(topics.data ?? [])].sort((a, b) => Number(loved.has(b.name)) - Number(loved.has(a.name)) || a.name.localeCompare(b.name)),
    [topics.data, loved],
  );
  const columns = useMemo(() => columnsWith(loved), [loved]);
  return (
    <Page
      title="Topics"
      actions={
        can("writer") && (
          <Button
            icon="plus"
            onClick={() => {
              setCreating(true);
            }}
          >
            Create a topic
          </Button>
        )
      }
    >
      {topics.isError && <ErrorNotice error={topics.error} retry={() => void topics.refetch()} />}
      {topics.isPending ? (
        <Spinner />
      ) : (
        <DataTable
          label="Topics"
          rows={rows}
          columns={columns}
          rowKey={(topic) => topic.id}
          href={(topic) => paths.topic(topic.name)}
          searchLabel="Search topics"
          tools={
            can("admin") && (
              <CheckField
                label="Internal topics too"
                checked={internal === "yes"}
                onChange={(checked) => {
                  setInternal(checked ? "yes" : "");
                }}
              />
            )
          }
          empty={
            <EmptyState title="No topic yet" icon="topics" command="headgate datagen orders --limit 1000">
              Topics appear here as soon as a Kafka client makes them. To try things out, let Headgate make up the orders of a shop.
            </EmptyState>
          }
        />
      )}
      <CreateTopic
        open={creating}
        onClose={() => {
          setCreating(false);
        }}
      />
    </Page>
  );
}

function columnsWith(loved: ReadonlySet<string>): readonly Column<TopicSummary>[] {
  return [
    {
      id: "name",
      header: "Topic",
      cell: (topic) => <Clip text={topic.name} />,
      sort: (topic) => topic.name,
      search: (topic) => topic.name,
    },
    {
      id: "records",
      header: "Records",
      align: "right",
      cell: (topic) => <Count value={topic.records} />,
      sort: (topic) => topic.records,
    },
    { id: "rate", header: "Rate", align: "right", cell: (topic) => <Rate value={topic.rate} />, sort: (topic) => topic.rate },
    {
      id: "partitions",
      header: "Partitions",
      align: "right",
      cell: (topic) => <Count value={topic.partitions.length} />,
      sort: (topic) => topic.partitions.length,
      wideOnly: true,
    },
    {
      id: "schema",
      header: "Schema",
      cell: (topic) => <SchemaOf topic={topic} />,
      sort: (topic) => topic.value_schema?.type,
      search: (topic) => topic.value_schema?.type ?? "",
    },
    {
      id: "table",
      header: "Table",
      cell: (topic) => (topic.table === null ? <span className="nothing">–</span> : <Badge state={topic.table} />),
      sort: (topic) => topic.table,
      search: (topic) => topic.table ?? "",
    },
    {
      id: "favourite",
      header: "",
      align: "right",
      width: "3rem",
      corner: true,
      cell: (topic) => (
        <IconButton
          small
          icon={loved.has(topic.name) ? "starred" : "star"}
          label={loved.has(topic.name) ? `${topic.name} is a favourite: take it out` : `Make ${topic.name} a favourite`}
          aria-pressed={loved.has(topic.name)}
          className={loved.has(topic.name) ? "favourite on" : "favourite"}
          onClick={() => {
            toggleFavourite(topic.name);
          }}
        />
      ),
    },
  ];
}

function SchemaOf({ topic }: { topic: TopicSummary }) {
  if (topic.value_schema === null) return topic.internal ? <Tag>internal</Tag> : <span className="nothing">–</span>;
  const { type, version, id } = topic.value_schema;
  return (
    <span title={`Schema id ${id}`}>
      <Tag>{type}</Tag> <span className="faint small">v{version}</span>
    </span>
  );
}
