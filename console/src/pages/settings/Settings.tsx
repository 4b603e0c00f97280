import { useQuery } from "@tanstack/react-query";
import { settingsQuery, type Setting } from "@/api/settings";
import { useCan } from "@/api/session";
import { useStatus } from "@/api/status";
import { Tag } from "@/components/Badge";
import { Clip } from "@/components/Clip";
import { CopyButton } from "@/components/CopyButton";
import { DataTable, type Column } from "@/components/DataTable";
import { Facts } from "@/components/Figures";
import { Select } from "@/components/Form";
import { ErrorNotice, Spinner } from "@/components/Notices";
import { Page, Panel } from "@/components/Page";
import { useSearchParam } from "@/lib/search";
import { AdminsOnly } from "@/shell/AdminsOnly";
import { environmentName, valueWords } from "./values";
import "./settings.css";

/** Where things are, and the settings that Headgate runs with. */
export function Settings() {
  const can = useCan();
  if (!can("admin")) return <AdminsOnly title="Settings" what="Settings" />;
  return (
    <Page
      title="Settings"
      about={
        <>
          What Headgate runs with. They are changed in <code>headgate.yaml</code> or the environment, and hold from the next start on.
        </>
      }
    >
      <Addresses />
      <List />
    </Page>
  );
}

function Addresses() {
  const status = useStatus().data;
  if (status === undefined) return null;
  const addresses: readonly [string, string][] = Object.entries(status.addresses);
  return (
    <Panel title="Addresses" about={`Headgate ${status.version}, cluster ${status.cluster}`}>
      <Facts
        items={addresses.map(([name, address]) => [
          name.replaceAll("_", " "),
          <span key={name} className="row">
            <Clip text={address} mono />
            <CopyButton text={address} what={`the address of ${name.replaceAll("_", " ")}`} />
          </span>,
        ])}
      />
    </Panel>
  );
}

type Source = "all" | "said" | "default";

function List() {
  const settings = useQuery(settingsQuery);
  const [wanted, choose] = useSearchParam("from", "all");
  if (settings.data === undefined)
    return settings.error === null ? (
      <Spinner />
    ) : (
      <ErrorNotice error={settings.error} retry={() => void settings.refetch()} />
    );
  const source: Source = wanted === "said" || wanted === "default" ? wanted : "all";
  const rows = settings.data.filter((one) => source === "all" || (one.source === "default") === (source === "default"));
  return (
    <DataTable
      label="Settings"
      rows={rows}
      columns={columns}
      rowKey={(one) => one.key}
      searchLabel="Search settings"
      tools={
        <Select
          aria-label="Which settings"
          value={source}
          onChange={choose}
          options={[
            { value: "all", label: "All settings" },
            { value: "said", label: "Set here" },
            { value: "default", label: "Defaults" },
          ]}
        />
      }
      empty={<p className="no-match">Everything is as it is by default.</p>}
    />
  );
}

const WHERE: Readonly<Record<Setting["source"], string>> = {
  default: "default",
  file: "headgate.yaml",
  environment: "environment",
  command: "command line",
};

const columns: readonly Column<Setting>[] = [
  {
    id: "key",
    header: "Setting",
    cell: (one) => (
      <span className="setting" title={environmentName(one.key)}>
        <Clip text={one.key} mono />
        {one.description !== "" && <span className="faint small">{one.description}</span>}
      </span>
    ),
    sort: (one) => one.key,
    search: (one) => `${one.key} ${environmentName(one.key)} ${one.description}`,
  },
  {
    id: "value",
    header: "Value",
    cell: (one) => <Value setting={one} />,
    search: (one) => (one.secret ? "" : valueWords(one.value)),
    width: "32%",
  },
  {
    id: "source",
    header: "From",
    cell: (one) => <span className={one.source === "default" ? "faint" : "set-here"}>{WHERE[one.source]}</span>,
    sort: (one) => one.source,
    search: (one) => WHERE[one.source],
    width: "9rem",
  },
];

function Value({ setting }: { setting: Setting }) {
  if (setting.secret) return <Tag title="A secret is never shown.">{setting.value === null ? "not set" : "set"}</Tag>;
  const words = valueWords(setting.value);
  return words === "" ? <span className="nothing">–</span> : <Clip text={words} mono lines={3} />;
}
