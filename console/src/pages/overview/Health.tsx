import { useQuery } from "@tanstack/react-query";
import { useAct } from "@/api/act";
import { healthQuery, startQueryDriver } from "@/api/health";
import { STATUS } from "@/api/live";
import type { Catalog, Status } from "@/api/model";
import { useCan } from "@/api/session";
import { Badge, type Tone } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { CopyButton } from "@/components/CopyButton";
import { NavLink } from "@/components/NavLink";
import { paths } from "@/lib/paths";
import { plural } from "@/lib/format";

interface Part {
  name: string;
  state: string;
  tone?: Tone | undefined;
  /** Where it listens, or what it is. */
  address?: string | undefined;
  about: string;
}

/** Whether everything that Headgate is made of answers. */
export function Health({ status, catalogs }: { status: Status; catalogs: readonly Catalog[] }) {
  const checks = useQuery(healthQuery).data;
  const parts = partsOf(status, checks);
  return (
    <section className="health" aria-label="Health">
      {parts.map((part) => (
        <div key={part.name} className="health-part">
          <div className="row">
            <h2>{part.name}</h2>
            <Badge state={part.state} tone={part.tone} />
          </div>
          {part.address === undefined ? (
            <span className="faint small">{part.about}</span>
          ) : (
            <span className="health-address" title={part.about}>
              <Clip text={part.address} mono />
              <CopyButton text={part.address} what={`the address of the ${part.name.toLowerCase()}`} />
            </span>
          )}
          {part.name === "Query driver" && part.state === "stopped" && <StartDriver />}
        </div>
      ))}
      {catalogs.map((catalog) => (
        <div key={catalog.name} className="health-part">
          <div className="row">
            <h2>
              <NavLink href={paths.integration("catalogs", catalog.name)}>
                <Clip text={catalog.name} />
              </NavLink>
            </h2>
            <Badge state={catalog.state} title={catalog.reason} />
          </div>
          <span className="faint small">
            {catalog.kind}, {plural(Object.values(catalog.tables).reduce((sum, count) => sum + count, 0), "table")}
          </span>
        </div>
      ))}
    </section>
  );
}

function StartDriver() {
  const can = useCan();
  const start = useAct({ run: startQueryDriver, done: () => "The query driver is starting", refresh: [STATUS] });
  if (!can("admin")) return null;
  return (
    <Button
      small
      busy={start.isPending}
      onClick={() => {
        start.mutate();
      }}
    >
      Start
    </Button>
  );
}

function partsOf(status: Status, checks: Readonly<Record<string, string>> | undefined): Part[] {
  const state = (name: string): string => status.processes.find((one) => one.name === name)?.state ?? "stopped";
  const { addresses } = status;
  const own = new URL(addresses.api).origin;
  const inside = (check: string): string => {
    if (checks === undefined) return state("server");
    return checks[check] === "ok" ? "ready" : "failing";
  };
  const has = (name: string): boolean => status.processes.some((one) => one.name === name);
  return [
    has("broker")
      ? { name: "Broker", state: state("broker"), address: addresses.kafka, about: "Built in" }
      : { name: "Broker", state: "external", address: addresses.kafka, about: "Your own Kafka" },
    addresses.registry.startsWith(own)
      ? { name: "Registry", state: inside("registry"), address: addresses.registry, about: "Built in" }
      : { name: "Registry", state: "external", address: addresses.registry, about: "Your own schema registry" },
    addresses.iceberg.startsWith(own)
      ? { name: "Catalog", state: inside("catalog"), address: addresses.iceberg, about: "Built in" }
      : { name: "Catalog", state: "external", address: addresses.iceberg, about: "Your own Iceberg catalog" },
    { name: "Engine", state: state("engine"), about: "Writes tables, runs statements" },
    {
      name: "Query driver",
      state: state("query"),
      tone: state("query") === "stopped" ? "idle" : undefined,
      address: addresses.spark_connect ?? undefined,
      about: "Starts with the first query",
    },
  ];
}
