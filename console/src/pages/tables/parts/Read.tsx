import { useStatus } from "@/api/status";
import { useCan } from "@/api/session";
import type { ShownTable } from "@/api/tables";
import { ButtonLink } from "@/components/Button";
import { CodeBlock, Command } from "@/components/CodeBlock";
import { Notice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { paths } from "@/lib/paths";
import { useSearchParam } from "@/lib/search";
import { recipes } from "../read";

/** Recipes for other engines, with this table's own address and names. */
export function Read({ table, cluster }: { table: ShownTable; cluster: string }) {
  const addresses = useStatus().data?.addresses;
  const can = useCan();
  const [chosen, choose] = useSearchParam("engine");
  const address = addresses?.iceberg;
  if (address === undefined) return <Spinner />;
  const all = recipes({
    address,
    cluster,
    topic: table.topic,
    location: table.detail.location ?? null,
    formats: table.spec.formats,
    formatVersion: table.detail.format_version ?? null,
  });
  const shown = all.find((recipe) => recipe.id === chosen) ?? all[0];
  if (shown === undefined) return null;
  return (
    <Panel title="How to read this table" about="Put your credential in place of CLIENT_ID and CLIENT_SECRET. On Headgate's own machine none is needed, unless it asks for one.">
      <div className="stack">
        <div className="tables-filter" role="group" aria-label="Engine">
          {all.map((recipe) => (
            <button
              key={recipe.id}
              type="button"
              aria-pressed={recipe === shown}
              onClick={() => {
                choose(recipe === all[0] ? "" : recipe.id);
              }}
            >
              {recipe.label}
            </button>
          ))}
        </div>
        {shown.note !== undefined && <p className="faint">{shown.note}</p>}
        {shown.blocks.map((block) => (
          <CodeBlock key={block.label} label={block.label} text={block.text} />
        ))}
        <Notice
          tone="info"
          title="A credential that may read"
          action={
            can("admin") && (
              <ButtonLink small href={paths.addIntegration("credentials")}>
                Create one
              </ButtonLink>
            )
          }
        >
          <Command text="headgate credentials create notebook --role reader" />
        </Notice>
      </div>
    </Panel>
  );
}
