import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { eventsQuery } from "@/api/activity";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { SearchField } from "@/components/Form";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { useSearchParam } from "@/lib/search";
import { EventsOfAll } from "./EventList";

const TYPING_MS = 300;

/** A text that is typed, and kept in the address once nobody types any more. */
export function useTyped(key: string): [string, (text: string) => void, string] {
  const [kept, keep] = useSearchParam(key);
  const [typed, setTyped] = useState(kept);
  const [before, setBefore] = useState(kept);
  // By a link, or by the browser's way back.
  if (kept !== before) {
    setBefore(kept);
    setTyped(kept);
  }
  useEffect(() => {
    if (typed === kept) return;
    const timer = setTimeout(() => {
      keep(typed);
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [typed, kept, keep]);
  return [typed, setTyped, kept];
}

export function EventsTab() {
  const [typed, setTyped, text] = useTyped("q");
  const [subject, setSubject] = useSearchParam("subject");
  const events = useInfiniteQuery(eventsQuery({ subject, text }));
  const rows = events.data?.pages.flat() ?? [];
  return (
    <div className="table-frame">
      <div className="table-tools">
        <SearchField label="Search events" value={typed} onChange={setTyped} />
        {subject !== "" && (
          <Button
            small
            icon="close"
            onClick={() => {
              setSubject("");
            }}
          >
            <Clip text={subject} />
          </Button>
        )}
      </div>
      {events.error !== null && <ErrorNotice error={events.error} retry={() => void events.refetch()} />}
      {events.data === undefined && events.error === null && <Spinner />}
      {events.data !== undefined && rows.length === 0 && (
        <EmptyState icon="activity" title={text === "" && subject === "" ? "Nothing has happened yet" : "Nothing matches"}>
          Tables, statements, catalogs, exports and processes leave an event when they change.
        </EmptyState>
      )}
      {rows.length > 0 && <EventsOfAll events={rows} />}
      <Older query={events} />
    </div>
  );
}

interface Paged {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
}

/** Asks for the next page, where there is one. */
export function Older({ query }: { query: Paged }) {
  if (!query.hasNextPage) return null;
  return (
    <div className="older">
      <Button
        busy={query.isFetchingNextPage}
        onClick={() => {
          void query.fetchNextPage();
        }}
      >
        Older ones
      </Button>
    </div>
  );
}
