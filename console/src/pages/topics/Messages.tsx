import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTail } from "@/api/tail";
import { messagesQuery, type Message, type MessageView } from "@/api/topics";
import { Button } from "@/components/Button";
import { SearchField, Select } from "@/components/Form";
import { EmptyState, ErrorNotice, Notice, Spinner } from "@/components/Notices";
import { formatCount, plural } from "@/lib/format";
import { useSearchParam } from "@/lib/search";
import { MessageList } from "./MessageList";

const STARTS = [
  { value: "latest", label: "Newest first" },
  { value: "earliest", label: "Oldest first" },
  { value: "offset", label: "From an offset" },
  { value: "time", label: "From a time" },
  { value: "live", label: "Live" },
] as const;

type Start = (typeof STARTS)[number]["value"];

const BRAKES = [5, 20, 50, 200].map((most) => ({ value: String(most), label: `${most} a second at most` }));

interface Props {
  name: string;
  partitions: readonly number[];
}

/** Messages of a topic, from where one wants: by page, or live. What is chosen is in the address. */
export function Messages({ name, partitions }: Props) {
  const [said, setStart] = useSearchParam("from", "latest");
  const [partition, setPartition] = useSearchParam("partition");
  const [offset, setOffset] = useSearchParam("offset");
  const [time, setTime] = useSearchParam("time");
  const [text, setText] = useSearchParam("text");
  const [brake, setBrake] = useSearchParam("most", "20");
  const start: Start = STARTS.find((one) => one.value === said)?.value ?? "latest";
  const chosen = /^\d+$/.test(partition) ? Number(partition) : undefined;
  const needed = start === "offset" ? (chosen ?? partitions[0]) : chosen;
  return (
    <div className="table-frame">
      <div className="table-tools">
        <Select<Start> aria-label="Where to begin" value={start} onChange={setStart} options={STARTS} />
        <Select
          aria-label="Partition"
          value={needed === undefined ? "" : String(needed)}
          onChange={setPartition}
          options={[
            ...(start === "offset" ? [] : [{ value: "", label: "All partitions" }]),
            ...partitions.map((one) => ({ value: String(one), label: `Partition ${one}` })),
          ]}
        />
        {start === "offset" && (
          <Committed label="Offset" type="text" inputMode="numeric" pattern="[0-9]*" value={offset} onCommit={setOffset} />
        )}
        {start === "time" && <Committed label="Time" type="datetime-local" step="1" value={time} onCommit={setTime} />}
        {start === "live" && <Select aria-label="The brake" value={brake} onChange={setBrake} options={BRAKES} />}
        <Filter value={text} onCommit={setText} />
      </div>
      {start === "live" ? (
        <Live name={name} partition={chosen} text={text} most={Number(brake) || 20} />
      ) : (
        <Pages
          name={name}
          view={{
            from: start === "latest" ? "latest" : "earliest",
            partition: needed,
            offset: start === "offset" ? Number(offset) || 0 : undefined,
            time: start === "time" && time !== "" ? instant(time) : undefined,
            text,
          }}
        />
      )}
    </div>
  );
}

/** A time of the browser's zone as an instant. */
function instant(local: string): string | undefined {
  const at = new Date(local).getTime();
  return Number.isNaN(at) ? undefined : String(at);
}

interface CommittedProps {
  label: string;
  value: string;
  onCommit: (value: string) => void;
  type: "text" | "datetime-local";
  step?: string;
  pattern?: string;
  inputMode?: "numeric";
}

/** A field that counts when Enter is pressed or it is left: not each key asks the server. */
function Committed({ label, value, onCommit, ...rest }: CommittedProps) {
  const [text, setText] = useState(value);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onCommit(text);
      }}
    >
      <input
        {...rest}
        aria-label={label}
        placeholder={label}
        value={text}
        className="message-where"
        onChange={(event) => {
          setText(event.target.value);
        }}
        onBlur={() => {
          onCommit(text);
        }}
      />
    </form>
  );
}

function Filter({ value, onCommit }: { value: string; onCommit: (value: string) => void }) {
  const [text, setText] = useState(value);
  return (
    <form
      className="row message-filter"
      onSubmit={(event) => {
        event.preventDefault();
        onCommit(text);
      }}
    >
      <SearchField
        label="Only messages with this text"
        value={text}
        onChange={(typed) => {
          setText(typed);
          if (typed === "") onCommit("");
        }}
      />
      {text !== value && (
        <Button type="submit" small>
          Filter
        </Button>
      )}
    </form>
  );
}

function Pages({ name, view }: { name: string; view: MessageView }) {
  const pages = useInfiniteQuery(messagesQuery(name, view));
  const messages = useMemo(() => pages.data?.pages.flatMap((page) => page.messages) ?? [], [pages.data]);
  if (pages.isPending) return <Spinner label={view.text === "" ? "Reading" : "Looking through the messages"} />;
  if (pages.data === undefined) return <ErrorNotice error={pages.error} retry={() => void pages.refetch()} />;
  const lookedAt = pages.data.pages.reduce((sum, page) => sum + page.looked_at, 0);
  const isWhole = pages.data.pages.at(-1)?.is_whole !== false;
  const again = (
    <Button small icon="refresh" busy={pages.isRefetching} onClick={() => void pages.refetch()}>
      Read again
    </Button>
  );
  if (messages.length === 0 && !pages.hasNextPage)
    return (
      <EmptyState title={view.text === "" ? "No message here" : "No message has this text"} icon="topics" action={again}>
        {view.text === ""
          ? "The topic is empty, or all of its messages are before this place."
          : `${plural(lookedAt, "message")} looked at: key, value and headers.`}
      </EmptyState>
    );
  return (
    <>
      {pages.isError && <ErrorNotice error={pages.error} />}
      <MessageList messages={messages} />
      <div className="message-more">
        <span className="faint small">
          {plural(messages.length, "message")}
          {view.text !== "" && ` of ${formatCount(lookedAt)} looked at`}
          {!isWhole && "; there may be more"}
        </span>
        {again}
        {pages.hasNextPage && (
          <Button busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            {isWhole ? "Show more" : "Look further"}
          </Button>
        )}
      </div>
    </>
  );
}

interface LiveProps {
  name: string;
  partition: number | undefined;
  text: string;
  most: number;
}

function Live({ name, partition, text, most }: LiveProps) {
  const { tail, restart } = useTail(name, { partition, text, most });
  const [frozen, setFrozen] = useState<readonly Message[] | null>(null);
  const shown = frozen ?? tail.messages;
  return (
    <>
      <div className="message-live" role="status">
        <span className={`live-mark ${tail.isOpen ? "live" : "offline"}`}>
          <span className="dot" aria-hidden="true" />
        </span>
        <span>
          {frozen !== null ? "Held" : tail.isOpen ? "Messages appear here as they come." : "Not connected."}
          {tail.leftOut > 0 && ` ${plural(tail.leftOut, "message")} left out by the brake.`}
          {text !== "" && tail.lookedAt > 0 && ` ${plural(tail.lookedAt, "message")} looked at.`}
        </span>
        <span className="spacer" />
        <Button
          small
          icon={frozen === null ? "pause" : "play"}
          onClick={() => {
            setFrozen(frozen === null ? tail.messages : null);
          }}
        >
          {frozen === null ? "Hold" : "Go on"}
        </Button>
      </div>
      {tail.error !== null && (
        <Notice
          tone="bad"
          title={tail.error.message}
          action={
            <Button small icon="refresh" onClick={restart}>
              Start again
            </Button>
          }
        >
          {tail.error.remedy}
        </Notice>
      )}
      {shown.length === 0 ? <EmptyState title="Waiting for messages" icon="clock" /> : <MessageList messages={shown} />}
    </>
  );
}
