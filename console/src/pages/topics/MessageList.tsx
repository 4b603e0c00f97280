import { useState } from "react";
import type { Message } from "@/api/topics";
import { Tag } from "@/components/Badge";
import { Clip, visible } from "@/components/Clip";
import { CodeBlock } from "@/components/CodeBlock";
import { Bytes, Facts, Time } from "@/components/Figures";
import { Icon } from "@/components/Icon";
import { Notice } from "@/components/Notices";
import { NONE } from "@/lib/format";

/** Messages, a line each; one that is opened shows everything. */
export function MessageList({ messages }: { messages: readonly Message[] }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string): void => {
    const next = new Set(opened);
    if (!next.delete(key)) next.add(key);
    setOpened(next);
  };
  return (
    <ul className="messages">
      {messages.map((message) => {
        const key = `${message.partition}:${message.offset}`;
        return (
          <Line
            key={key}
            message={message}
            isOpen={opened.has(key)}
            onToggle={() => {
              toggle(key);
            }}
          />
        );
      })}
    </ul>
  );
}

interface LineProps {
  message: Message;
  isOpen: boolean;
  onToggle: () => void;
}

function Line({ message, isOpen, onToggle }: LineProps) {
  return (
    <li className={isOpen ? "message open" : "message"}>
      <button type="button" className="message-line" aria-expanded={isOpen} onClick={onToggle}>
        <Icon name={isOpen ? "down" : "right"} size={13} />
        <span className="message-at number" title={`Partition ${message.partition}, offset ${message.offset}`}>
          {message.partition}:{message.offset}
        </span>
        <span className="message-time faint">
          <Time at={seconds(message.timestamp)} exact />
        </span>
        <span className="message-key">
          <Part content={message.key} />
        </span>
        <span className="message-value">
          {message.error !== null ? (
            <span className="message-error">
              <Icon name="warning" size={13} /> <Clip text={message.error} />
            </span>
          ) : message.value_format === "none" ? (
            <Tag>tombstone</Tag>
          ) : (
            <Part content={message.value} />
          )}
        </span>
        {message.value_schema_id !== null && (
          <span className="message-schema">
            <Tag title="Schema id">{`#${message.value_schema_id}`}</Tag>
          </span>
        )}
      </button>
      {isOpen && <Whole message={message} />}
    </li>
  );
}

function Part({ content }: { content: unknown }) {
  if (content === null) return <span className="nothing">{NONE}</span>;
  return <Clip text={typeof content === "string" ? content : JSON.stringify(content)} mono />;
}

function Whole({ message }: { message: Message }) {
  return (
    <div className="message-whole">
      {message.error !== null && (
        <Notice tone="bad" title="It cannot be decoded">
          <bdi>{message.error}</bdi>
        </Notice>
      )}
      {message.key !== null && <CodeBlock label={partLabel("Key", message.key_format, message.key_schema_id)} text={written(message.key)} />}
      {message.value_format === "none" ? (
        <p className="faint">No value: a tombstone, which ends the rows of its key.</p>
      ) : (
        <CodeBlock label={partLabel("Value", message.value_format, message.value_schema_id)} text={written(message.value)} />
      )}
      {message.headers.length > 0 && (
        <Facts
          items={message.headers.map((header, index) => [
            `${visible(header.name)}${index > 0 && message.headers.findIndex((one) => one.name === header.name) < index ? ` (${index + 1})` : ""}`,
            header.text !== null ? <Clip text={header.text} mono lines={3} /> : header.hex !== null ? <Clip text={`0x${header.hex}`} mono lines={3} /> : NONE,
          ])}
        />
      )}
      <Facts
        items={[
          ["Partition and offset", `${message.partition} : ${message.offset}`],
          ["Timestamp", <Time key="time" at={seconds(message.timestamp)} exact />],
          ["Size", <Bytes key="bytes" value={message.bytes} />],
        ]}
      />
    </div>
  );
}

function partLabel(part: string, format: string, schemaId: number | null): string {
  return `${part} · ${format}${schemaId === null ? "" : ` · schema ${schemaId}`}`;
}

function written(content: unknown): string {
  return typeof content === "string" ? visible(content) : JSON.stringify(content, null, 2);
}

function seconds(timestamp: string | null): number | null {
  if (timestamp === null) return null;
  const at = Date.parse(timestamp);
  return Number.isNaN(at) ? null : at / 1000;
}
