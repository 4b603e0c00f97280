import type { ReactNode } from "react";
import { useNow } from "@/lib/clock";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatLocal,
  formatRelative,
  formatShort,
  formatUtc,
  NONE,
} from "@/lib/format";

type Known<Value> = Value | null | undefined;

const Nothing = () => <span className="nothing">{NONE}</span>;

/** A time, in seconds since 1970: how long ago it is, with the exact one on hover, in UTC. */
export function Time({ at, exact = false }: { at: Known<number>; exact?: boolean }) {
  const now = useNow();
  if (at === null || at === undefined) return <Nothing />;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={exact ? formatUtc(at) : `${formatUtc(at)}\n${formatLocal(at)} here`}>
      {exact ? formatLocal(at) : formatRelative(at, now)}
    </time>
  );
}

/** A count; `short` gives `1.2M`, with the whole number on hover. */
export function Count({ value, short = false }: { value: Known<number>; short?: boolean }) {
  if (value === null || value === undefined) return <Nothing />;
  if (!short || Math.abs(value) < 10_000) return <span className="number">{formatCount(value)}</span>;
  return (
    <span className="number" title={formatCount(value)}>
      {formatShort(value)}
    </span>
  );
}

/** A size; the exact number of bytes is on hover. */
export function Bytes({ value }: { value: Known<number> }) {
  if (value === null || value === undefined) return <Nothing />;
  return (
    <span className="number" title={`${formatCount(value)} bytes`}>
      {formatBytes(value)}
    </span>
  );
}

export function Duration({ seconds }: { seconds: Known<number> }) {
  if (seconds === null || seconds === undefined) return <Nothing />;
  return <span className="number">{formatDuration(seconds)}</span>;
}

/** Records per second. */
export function Rate({ value }: { value: Known<number> }) {
  if (value === null || value === undefined) return <Nothing />;
  return <span className="number">{value > 0 && value < 10 ? value.toFixed(1) : formatShort(Math.round(value))}/s</span>;
}

/** One figure of a panel with what it is. */
export function Stat({ label, children, hint }: { label: string; children: ReactNode; hint?: string }) {
  return (
    <div className="stat" title={hint}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Figures side by side: a list of `Stat`. */
export function Stats({ children }: { children: ReactNode }) {
  return <dl className="stats">{children}</dl>;
}

/** Facts one below the other: pairs of a name and a value. */
export function Facts({ items }: { items: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {items.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
