import { useEffect, useId, useRef, type KeyboardEvent, type ReactNode } from "react";
import { useSearchParam } from "@/lib/search";
import { Clip, visible } from "./Clip";
import { Icon } from "./Icon";
import { NavLink } from "./NavLink";

interface PageProps {
  title: string;
  /** What stands beside the title: a badge, a tag. */
  beside?: ReactNode;
  /** Under the title: a line that says what this is. */
  about?: ReactNode;
  /** Where it belongs to: the list that it is from. */
  from?: { label: string; href: string };
  actions?: ReactNode;
  children: ReactNode;
}

/** A page with its heading; its title is the tab's too. */
export function Page({ title, beside, about, from, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${visible(title)} · Headgate`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-header">
        <div className="page-heading">
          {from !== undefined && (
            <NavLink className="from" href={from.href}>
              <Icon name="left" size={13} />
              {from.label}
            </NavLink>
          )}
          <div className="page-title">
            <h1>
              <Clip text={title} />
            </h1>
            {beside}
          </div>
          {about !== undefined && <div className="about">{about}</div>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export interface TabItem {
  id: string;
  label: string;
  /** A figure beside the label. */
  count?: number | undefined;
  panel: () => ReactNode;
}

/** Parts of a page, one at a time; which one is in the address (`?tab=`). The first one is shown if none is named. */
export function Tabs({ label, items, param = "tab" }: { label: string; items: readonly TabItem[]; param?: string }) {
  const first = items[0]?.id ?? "";
  const [wanted, choose] = useSearchParam(param, first);
  const shown = items.find((item) => item.id === wanted) ?? items[0];
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const move = (event: KeyboardEvent): void => {
    const at = items.findIndex((item) => item.id === shown?.id);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[event.key];
    const item = next === undefined ? undefined : items[(next + items.length) % items.length];
    if (item === undefined) return;
    event.preventDefault();
    choose(item.id);
    list.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}${item.id}`)}`)?.focus();
  };
  if (shown === undefined) return null;
  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move} tabIndex={-1}>
        {items.map((item) => (
          <button
            key={item.id}
            type="button"
            role="tab"
            id={`${id}${item.id}`}
            aria-selected={item === shown}
            aria-controls={`${id}panel`}
            tabIndex={item === shown ? 0 : -1}
            onClick={() => {
              choose(item.id);
            }}
          >
            {item.label}
            {item.count !== undefined && <span className="tab-count">{item.count}</span>}
          </button>
        ))}
      </div>
      <div className="tab-panel" role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${shown.id}`} key={shown.id}>
        {shown.panel()}
      </div>
    </>
  );
}

interface PanelProps {
  title?: string;
  about?: ReactNode;
  actions?: ReactNode;
  /** Without space around what is in it: for tables. */
  flush?: boolean;
  children: ReactNode;
}

/** A part of a page, with a border and a heading of its own. */
export function Panel({ title, about, actions, flush = false, children }: PanelProps) {
  return (
    <section className={flush ? "panel flush" : "panel"}>
      {(title !== undefined || actions !== undefined) && (
        <header>
          <div>
            {title !== undefined && <h2>{title}</h2>}
            {about !== undefined && <div className="about">{about}</div>}
          </div>
          {actions !== undefined && <div className="actions">{actions}</div>}
        </header>
      )}
      <div className="panel-body">{children}</div>
    </section>
  );
}
