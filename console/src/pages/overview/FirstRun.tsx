import { useQuery } from "@tanstack/react-query";
import { useAct } from "@/api/act";
import { api, unwrap } from "@/api/client";
import { useCan } from "@/api/session";
import { topicsQuery } from "@/api/topics";
import { Button, ButtonLink } from "@/components/Button";
import { Command } from "@/components/CodeBlock";
import { useGo } from "@/components/NavLink";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";

const SAMPLE_TOPIC = "payments";

/** Where nothing is yet: three steps to a first table, each a button and a command. */
export function FirstRun() {
  const topics = useQuery({ ...topicsQuery(false), refetchInterval: 3000 }).data;
  const can = useCan();
  const hasTopics = (topics?.length ?? 0) > 0;
  const example = topics?.find((topic) => topic.name === SAMPLE_TOPIC)?.name ?? topics?.[0]?.name ?? SAMPLE_TOPIC;
  return (
    <Panel title="Get the first table going">
      <ol className="first-run">
        <Step number={1} title="Have a topic with records" done={hasTopics}>
          <p>Bring your own with any Kafka client, or let Headgate make up the orders of a shop.</p>
          <div className="row">
            {can("writer") && <MakeUp done={hasTopics} />}
            <Command text="headgate datagen orders --limit 1000 --seed 7" />
          </div>
        </Step>
        <Step number={2} title="Enable it as a table">
          <p>Iceberg and Delta Lake over one copy of the data, seconds after the records arrive, each exactly once.</p>
          <div className="row">
            {can("writer") && (
              <ButtonLink href={paths.enableTable(hasTopics ? example : undefined)} kind={hasTopics ? "primary" : "plain"}>
                Enable a topic
              </ButtonLink>
            )}
            <Command text={`headgate table enable ${example}`} />
          </div>
        </Step>
        <Step number={3} title="Read it with any engine">
          <p>Each table’s page shows how: DuckDB, Spark, Trino, PyIceberg, pandas, and readers of Delta Lake.</p>
          <Command text={`headgate query "SELECT count(*) FROM ${example}"`} />
        </Step>
      </ol>
    </Panel>
  );
}

function Step({ number, title, done = false, children }: { number: number; title: string; done?: boolean; children: React.ReactNode }) {
  return (
    <li>
      <span className={done ? "first-run-number done" : "first-run-number"} aria-hidden="true">
        {done ? "✓" : number}
      </span>
      <div className="stack">
        <h3>{title}</h3>
        {children}
      </div>
    </li>
  );
}

function MakeUp({ done }: { done: boolean }) {
  const go = useGo();
  const start = useAct({
    run: () => unwrap(api.POST("/api/v1/generators", { body: { scenario: "orders", rate: 50 } as never })),
    done: () => "Made-up orders are coming, 50 a second",
    refresh: [["topics"]],
    then: () => {
      go(paths.topics());
    },
  });
  return (
    <Button
      kind={done ? "plain" : "primary"}
      icon="play"
      busy={start.isPending}
      onClick={() => {
        start.mutate();
      }}
    >
      Make up orders
    </Button>
  );
}
