import { expect, test } from "vitest";
import { ApiError } from "@/api/client";
import { KEPT_MESSAGES, tailAfter, type TailState } from "@/api/tail";
import { withRates, type Message, type TopicSummary } from "@/api/topics";
import { favourites, toggleFavourite } from "@/lib/favourites";

const topic = (id: string, records: number | null, rate: number | null = null): TopicSummary => ({
  name: id,
  id,
  partitions: [0],
  internal: false,
  records,
  rate,
  value_schema: null,
  key_schema: null,
  table: null,
});
const rateOf = (topics: readonly TopicSummary[]): number | null | undefined => topics[0]?.rate;

test("a rate comes of two counts, and a topic that began again has none", () => {
  expect(rateOf(withRates([topic("a", 100)], 1000))).toBeNull();
  expect(rateOf(withRates([topic("a", 150)], 1005))).toBe(10);
  expect(rateOf(withRates([topic("a", 20)], 1010))).toBeNull();
});

test("a rate that the server knows stands", () => {
  expect(rateOf(withRates([topic("b", 100, 7)], 1000))).toBe(7);
});

const message = (offset: number): Message => ({ partition: 0, offset }) as Message;
const empty: TailState = { messages: [], leftOut: 0, lookedAt: 0, error: null, isOpen: false };

test("a live tail has the newest first, and holds no more than it shows", () => {
  const many = Array.from({ length: KEPT_MESSAGES + 50 }, (_, offset) => message(offset));
  const state = tailAfter(tailAfter(empty, { kind: "messages", messages: many }), { kind: "messages", messages: [message(9999)] });
  expect(state.messages).toHaveLength(KEPT_MESSAGES);
  expect(state.messages.slice(0, 2).map((one) => one.offset)).toEqual([9999, KEPT_MESSAGES + 49]);
});

test("a live tail that fails keeps what it has, and says why", () => {
  const error = new ApiError(0, "NotAuthorized", "The credential was revoked.", "");
  const state = tailAfter({ ...empty, messages: [message(1)], isOpen: true }, { kind: "failed", error });
  expect(state).toMatchObject({ isOpen: false, error, messages: [message(1)] });
});

test("favourites are kept in the browser", () => {
  toggleFavourite("orders");
  toggleFavourite("payments");
  toggleFavourite("orders");
  expect([...favourites.get()]).toEqual(["payments"]);
  expect(localStorage.getItem("headgate.favourite-topics")).toBe('["payments"]');
});
