import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";
import type { Schemas } from "./model";

export type TopicSummary = Schemas["ListedTopicAnswer"];
export type Topic = Schemas["ShownTopicAnswer"];
export type Message = Schemas["MessageAnswer"];
export type MessagePage = Schemas["MessagesAnswer"];
export type TopicSchemas = Schemas["TopicSchemasAnswer"];
export type Subject = Schemas["SubjectAnswer"];
export type SchemaVersion = Schemas["SchemaVersionAnswer"];
export type NewMessage = Schemas["MessageRequest"];

const LIST_EVERY_MS = 5000;

export function topicsQuery(internal: boolean) {
  return queryOptions({
    queryKey: ["topics", { internal }],
    queryFn: async () => {
      const topics = await unwrap(api.GET("/api/v1/topics", { params: { query: { internal } } }));
      return withRates(topics, Date.now() / 1000);
    },
    staleTime: LIST_EVERY_MS,
  });
}

/** The list as a page shows it that stays open: asked for again every few seconds. */
export const watchedTopicsQuery = (internal: boolean) => ({
  ...topicsQuery(internal),
  refetchInterval: LIST_EVERY_MS,
});

export function topicQuery(name: string) {
  return queryOptions({
    queryKey: ["topic", name],
    queryFn: () => unwrap(api.GET("/api/v1/topics/{name}", { params: { path: { name } } })),
    refetchInterval: LIST_EVERY_MS,
  });
}

export function schemasQuery(name: string) {
  return queryOptions({
    queryKey: ["topic", name, "schemas"],
    queryFn: () => unwrap(api.GET("/api/v1/topics/{name}/schemas", { params: { path: { name } } })),
    staleTime: 10_000,
  });
}

/** Where to begin, and what to keep: as in the address of the page. */
export interface MessageView {
  from: "latest" | "earliest";
  partition: number | undefined;
  offset: number | undefined;
  time: string | undefined;
  text: string;
}

export const PAGE_MESSAGES = 50;

export function messagesQuery(name: string, view: MessageView) {
  return infiniteQueryOptions({
    queryKey: ["topic", name, "messages", view],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/topics/{name}/messages", {
          params: { path: { name }, query: pageParam === null ? firstPage(view) : { cursor: pageParam, ...kept(view) } },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: Infinity,
    gcTime: 60_000,
  });
}

function kept(view: MessageView) {
  return { limit: PAGE_MESSAGES, ...(view.text === "" ? {} : { text: view.text }) };
}

function firstPage(view: MessageView) {
  return {
    ...kept(view),
    from: view.from,
    ...(view.partition === undefined ? {} : { partition: view.partition }),
    ...(view.offset === undefined ? {} : { offset: view.offset }),
    ...(view.time === undefined ? {} : { time: view.time }),
  };
}

export function createTopic(body: Schemas["TopicRequest"]) {
  return unwrap(api.POST("/api/v1/topics", { body }));
}

export function deleteTopic(name: string) {
  return unwrap(api.DELETE("/api/v1/topics/{name}", { params: { path: { name } } }));
}

export function produce(name: string, body: NewMessage) {
  return unwrap(api.POST("/api/v1/topics/{name}/messages", { params: { path: { name } }, body }));
}

interface Count {
  records: number;
  at: number;
  rate: number | null;
}

const counts = new Map<string, Count>();

/** The list with rates: from two counts that this page has seen, where the server knows none. */
export function withRates(topics: readonly TopicSummary[], now: number): readonly TopicSummary[] {
  return topics.map((topic) => {
    if (topic.records === null || topic.rate !== null) return topic;
    const before = counts.get(topic.id);
    if (before !== undefined && now - before.at < 1) return { ...topic, rate: before.rate };
    const more = before === undefined ? null : topic.records - before.records;
    const rate = more === null || before === undefined || more < 0 ? null : more / (now - before.at);
    counts.set(topic.id, { records: topic.records, at: now, rate });
    return { ...topic, rate };
  });
}
