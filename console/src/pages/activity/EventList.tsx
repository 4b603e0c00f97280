import type { Event } from "@/api/activity";
import { Clip } from "@/components/Clip";
import { Time } from "@/components/Figures";
import { NavLink } from "@/components/NavLink";
import { EmptyState } from "@/components/Notices";
import { subjectOf } from "./subjects";
import "./activity.css";

/** What happened to one thing, the newest first. */
export function EventList({ events }: { events: readonly Event[] }) {
  if (events.length === 0) return <EmptyState icon="activity" title="Nothing has happened yet" />;
  return (
    <ol className="events" aria-label="Events">
      {events.map((event) => (
        <li key={event.id}>
          <Time at={event.at} />
          <Clip text={event.kind} />
          <Clip text={event.message} lines={3} />
        </li>
      ))}
    </ol>
  );
}

/** The same for several things: each with what it is about. */
export function EventsOfAll({ events }: { events: readonly Event[] }) {
  return (
    <ol className="events of-all" aria-label="Events">
      {events.map((event) => (
        <li key={event.id}>
          <Time at={event.at} />
          <SubjectLink text={event.subject} />
          <Clip text={event.kind} />
          <Clip text={event.message} lines={3} />
        </li>
      ))}
    </ol>
  );
}

function SubjectLink({ text }: { text: string }) {
  const { noun, name, href } = subjectOf(text);
  return (
    <span className="subject">
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
}
