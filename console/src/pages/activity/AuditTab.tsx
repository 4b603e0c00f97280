import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { auditQuery, type AuditEntry } from "@/api/activity";
import { useStatus } from "@/api/status";
import { Badge } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { Time } from "@/components/Figures";
import { SearchField, Select } from "@/components/Form";
import { NavLink } from "@/components/NavLink";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { useSearchParam } from "@/lib/search";
import { Older, useTyped } from "./EventsTab";
import { thingOf } from "./subjects";

const SPANS = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "1d", label: "Last day" },
  { value: "7d", label: "Last week" },
] as const;

const SECONDS: Readonly<Record<string, number>> = { "1h": 3600, "1d": 86_400, "7d": 604_800 };

/** Who did what: requests that changed something, asked for rows, or were refused. */
export function AuditTab() {
  const [who, setWho, keptWho] = useTyped("who");
  const [about, setAbout, keptAbout] = useTyped("about");
  const [span, setSpan] = useSearchParam("since");
  const [refused, setRefused] = useSearchParam("refused", "no");
  const since = useSince(span);
  const entries = useInfiniteQuery(auditQuery({ who: keptWho.trim(), about: keptAbout.trim(), since, refused: refused === "yes" }));
  const rows = entries.data?.pages.flat() ?? [];
  const chosen = SPANS.find((one) => one.value === span)?.value ?? "";
  return (
    <div className="table-frame">
      <div className="table-tools">
        <SearchField label="Who: name or client id" value={who} onChange={setWho} />
        <SearchField label="About: a thing's name" value={about} onChange={setAbout} />
        <Select aria-label="Time" value={chosen} onChange={setSpan} options={SPANS} />
        <label className="row small">
          <input
            type="checkbox"
            checked={refused === "yes"}
            onChange={(event) => {
              setRefused(event.target.checked ? "yes" : "no");
            }}
          />
          Only refused or failed
        </label>
      </div>
      {entries.error !== null && <ErrorNotice error={entries.error} retry={() => void entries.refetch()} />}
      {entries.data === undefined && entries.error === null && <Spinner />}
      {entries.data !== undefined && rows.length === 0 && (
        <EmptyState icon="activity" title="No entries" command="headgate audit">
          Requests that change something, ask for rows or are refused leave an entry. The names are exact.
        </EmptyState>
      )}
      {rows.length > 0 && <Entries rows={rows} />}
      <Older query={entries} />
    </div>
  );
}

/** The beginning of a span, which stays as it is while the page is looked at. */
function useSince(span: string): number | null {
  const [now] = useState(() => Date.now() / 1000);
  const seconds = SECONDS[span];
  return seconds === undefined ? null : Math.floor(now) - seconds;
}

function Entries({ rows }: { rows: readonly AuditEntry[] }) {
  return (
    <table className="data-table" aria-label="Audit trail">
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">Did</th>
          <th scope="col">About</th>
          <th scope="col">From</th>
          <th scope="col">Answer</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((entry) => (
          <tr key={entry.id}>
            <td data-label="When" className="first">
              <Time at={entry.at} />
            </td>
            <td data-label="Who">
              <Who entry={entry} />
            </td>
            <td data-label="Did">
              <Clip text={entry.action} mono />
            </td>
            <td data-label="About">
              <Things entry={entry} />
            </td>
            <td data-label="From">
              <Clip text={`${entry.address || "–"} · ${entry.door}`} />
            </td>
            <td data-label="Answer">
              <Badge state={String(entry.status)} tone={toneOf(entry.status)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function toneOf(status: number): "good" | "warn" | "bad" {
  if (status < 400) return "good";
  return status < 500 ? "warn" : "bad";
}

function Who({ entry }: { entry: AuditEntry }) {
  if (entry.who === "") return <span className="faint">nobody</span>;
  return (
    <span title={entry.credential}>
      <Clip text={entry.who} />
    </span>
  );
}

function Things({ entry }: { entry: AuditEntry }) {
  const cluster = useStatus().data?.cluster ?? "";
  if (entry.things.length === 0) return <span className="nothing">–</span>;
  return (
    <span className="things">
      {[...new Set(entry.things)].map((text) => {
        const { noun, name, href } = thingOf(text, entry.action, cluster);
        return (
          <span key={text} className="subject">
            <span className="faint">{noun}</span>{" "}
            {href === null ? (
              <Clip text={name} />
            ) : (
              <NavLink href={href}>
                <Clip text={name} />
              </NavLink>
            )}
          </span>
        );
      })}
    </span>
  );
}
