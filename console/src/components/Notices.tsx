import type { ReactNode } from "react";
import { asApiError } from "@/api/client";
import { Button } from "./Button";
import { Command, Sentence } from "./CodeBlock";
import { Icon, type IconName } from "./Icon";

/** A failure in the server's words, with what to do next, and a button to try again. */
export function ErrorNotice({ error, retry, title }: { error: unknown; retry?: () => void; title?: string }) {
  const said = asApiError(error);
  return (
    <div className="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        <p>
          <bdi>{said.message}</bdi>
        </p>
        {said.remedy && (
          <p className="remedy">
            <Sentence text={said.remedy} />
          </p>
        )}
      </div>
      {retry !== undefined && (
        <Button small icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Something that a user should know: `warn` where it may cost something, `info` otherwise. */
export function Notice({
  tone = "info",
  title,
  children,
  action,
}: {
  tone?: "info" | "warn" | "bad" | "good";
  title?: string;
  children?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className={`notice ${tone}`} role="status">
      <Icon name={tone === "info" ? "info" : tone === "good" ? "check" : "warning"} />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {children}
      </div>
      {action}
    </div>
  );
}

/** Where nothing is yet: what would be here, and how to get the first one. */
export function EmptyState({
  title,
  icon = "info",
  children,
  command,
  action,
}: {
  title: string;
  icon?: IconName;
  children?: ReactNode;
  command?: string | readonly string[];
  action?: ReactNode;
}) {
  const commands = command === undefined ? [] : typeof command === "string" ? [command] : command;
  return (
    <div className="empty">
      <span className="empty-icon">
        <Icon name={icon} size={22} />
      </span>
      <h3>{title}</h3>
      {children !== undefined && <p>{children}</p>}
      {action !== undefined && <div className="empty-action">{action}</div>}
      {commands.length > 0 && (
        <div className="empty-commands">
          {action !== undefined && <span className="faint">or in a terminal</span>}
          {commands.map((text) => (
            <Command key={text} text={text} />
          ))}
        </div>
      )}
    </div>
  );
}

/** Shown while something is fetched; nothing at first, so that what is quick does not flicker. */
export function Spinner({ label = "Loading" }: { label?: string }) {
  return (
    <div className="loading" role="status">
      <span className="spinner" aria-hidden="true" />
      {label} …
    </div>
  );
}

/** How far something is: `share` from 0 to 1; without one it only shows that it goes on. */
export function Progress({ share, label }: { share?: number | undefined; label: string }) {
  const percent = share === undefined ? undefined : Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <div className="progress">
      <span>
        {label}
        {percent !== undefined && <span className="number"> {percent} %</span>}
      </span>
      <div
        className={percent === undefined ? "bar endless" : "bar"}
        role="progressbar"
        aria-label={label}
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <div style={percent === undefined ? undefined : { inlineSize: `${percent}%` }} />
      </div>
    </div>
  );
}
