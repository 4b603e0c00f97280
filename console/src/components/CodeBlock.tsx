import { CopyButton } from "./CopyButton";

/** Code, a command, a policy: kept as it is, with a button to copy it. */
export function CodeBlock({ text, label, language }: { text: string; label?: string; language?: string }) {
  return (
    <figure className="code-block">
      <figcaption>
        <span>{label ?? language ?? ""}</span>
        <CopyButton text={text} what={label ?? "the text"} />
      </figcaption>
      {/* Long lines are scrolled to by keyboard too. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0}>
        <code dir="auto">{text}</code>
      </pre>
    </figure>
  );
}

/** One command, to be copied into a terminal. */
export function Command({ text }: { text: string }) {
  return (
    <span className="command">
      <code>{text}</code>
      <CopyButton text={text} what="the command" />
    </span>
  );
}

/** A sentence of the server's with `commands` between backticks, each with a button to copy it. */
export function Sentence({ text }: { text: string }) {
  return (
    <>
      {text.split(/`([^`]+)`/).map((part, index) =>
        index % 2 === 0 ? (
          <bdi key={index}>{part}</bdi>
        ) : (
          <Command key={index} text={part} />
        ),
      )}
    </>
  );
}
