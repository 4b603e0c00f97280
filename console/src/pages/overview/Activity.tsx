import { useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import { ButtonLink } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Time } from "@/components/Figures";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";

const MOST = 6;

/** What happened last. */
export function Activity() {
  const events = useQuery({
    queryKey: ["events", "newest"],
    queryFn: () => unwrap(api.GET("/api/v1/events", { params: { query: { limit: MOST } } })),
    refetchInterval: 10_000,
  }).data;
  if (events === undefined || events.length === 0) return null;
  return (
    <Panel
      title="Last events"
      flush
      actions={
        <ButtonLink small href={paths.activity()}>
          All activity
        </ButtonLink>
      }
    >
      <ul className="overview-events">
        {events.map((event) => (
          <li key={event.id}>
            <span className="faint small">
              <Time at={event.at} />
            </span>
            <strong>
              <Clip text={event.subject} />
            </strong>
            <span>
              {event.kind} <Clip text={event.message} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
