import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { topicsQuery } from "@/api/topics";
import { useCan } from "@/api/session";
import { useStatus } from "@/api/status";
import { Clip } from "@/components/Clip";
import { Icon, type IconName } from "@/components/Icon";
import { useGo } from "@/components/NavLink";
import { paths } from "@/lib/paths";
import { SECTIONS } from "./sections";

interface Target {
  kind: string;
  name: string;
  href: string;
  icon: IconName;
}

const MOST = 12;
const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Ctrl-K: goes to any page, topic, table or statement by a few letters of its name. */
export function JumpDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    document.addEventListener("keydown", press);
    return () => {
      document.removeEventListener("keydown", press);
    };
  }, []);
  useEffect(() => {
    if (open && dialog.current?.open === false) dialog.current.showModal();
  }, [open]);
  const close = (): void => {
    dialog.current?.close();
    setOpen(false);
  };
  return (
    <>
      <button
        type="button"
        className="jump-button"
        aria-keyshortcuts="Control+K"
        onClick={() => {
          setOpen(true);
        }}
      >
        <Icon name="search" />
        <span>Jump to …</span>
        <kbd>{IS_MAC ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      <dialog ref={dialog} className="jump" aria-label="Jump to" onClose={close} onCancel={close}>
        {open && <JumpList onDone={close} />}
      </dialog>
    </>
  );
}

function JumpList({ onDone }: { onDone: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const go = useGo();
  const id = useId();
  const targets = useTargets();
  const found = useMemo(() => bestMatches(targets, text).slice(0, MOST), [targets, text]);
  const choose = (target: Target | undefined): void => {
    if (target === undefined) return;
    onDone();
    go(target.href);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "Enter") choose(found[at]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || found.length === 0) return;
    event.preventDefault();
    setAt((at + step + found.length) % found.length);
  };
  return (
    <>
      <input
        // The dialog is opened to type into it.
        // eslint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls={`${id}list`}
        aria-activedescendant={found[at] === undefined ? undefined : `${id}${at}`}
        aria-label="Jump to a page, topic, table or statement"
        placeholder="A page, topic, table or statement"
        spellCheck={false}
        autoComplete="off"
        value={text}
        onKeyDown={press}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
      />
      <div role="listbox" id={`${id}list`} aria-label="Places">
        {found.map((target, index) => (
          <button
            key={`${target.kind} ${target.name}`}
            id={`${id}${index}`}
            type="button"
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onPointerMove={() => {
              setAt(index);
            }}
            onClick={() => {
              choose(target);
            }}
          >
            <Icon name={target.icon} />
            <Clip text={target.name} />
            <span className="faint">{target.kind}</span>
          </button>
        ))}
      </div>
      {found.length === 0 && <p className="no-match">Nothing has such a name.</p>}
    </>
  );
}

function useTargets(): readonly Target[] {
  const status = useStatus().data;
  const topics = useQuery(topicsQuery(false)).data;
  const can = useCan();
  const isAdmin = can("admin");
  return useMemo(
    () => [
      ...SECTIONS.filter((section) => section.admin !== true || isAdmin).map((section) => ({
        kind: "page",
        name: section.label,
        href: section.href,
        icon: section.icon,
      })),
      ...(status?.tables ?? []).map((table) => ({
        kind: "table",
        name: table.topic,
        href: paths.table(table.topic),
        icon: "tables" as const,
      })),
      ...(topics ?? []).map((topic) => ({
        kind: "topic",
        name: topic.name,
        href: paths.topic(topic.name),
        icon: "topics" as const,
      })),
      ...(status?.statements ?? []).map((statement) => ({
        kind: "statement",
        name: statement.name,
        href: paths.statement(statement.name),
        icon: "statements" as const,
      })),
    ],
    [status?.tables, status?.statements, topics, isAdmin],
  );
}

/** Names that begin with the text first, then those that have it, then those that have its letters in order. */
export function bestMatches<Named extends { name: string; kind: string }>(targets: readonly Named[], text: string): Named[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [...targets];
  return targets
    .map((target) => ({ target, rank: rankOf(target.name.toLowerCase(), wanted) }))
    .filter(({ rank }) => rank < 3)
    .sort((a, b) => a.rank - b.rank || a.target.name.length - b.target.name.length)
    .map(({ target }) => target);
}

function rankOf(name: string, wanted: string): number {
  if (name.startsWith(wanted)) return 0;
  if (name.includes(wanted)) return 1;
  let from = 0;
  for (const letter of wanted) {
    const at = name.indexOf(letter, from);
    if (at < 0) return 3;
    from = at + 1;
  }
  return 2;
}
