import { useSession } from "@/api/session";
import { useStatus } from "@/api/status";
import { ErrorNotice, Spinner } from "@/components/Notices";
import { Page } from "@/components/Page";
import { Activity } from "./Activity";
import { Charts } from "./Charts";
import { FirstRun } from "./FirstRun";
import { Health } from "./Health";
import { InShort } from "./InShort";
import { NeedsAttention } from "./NeedsAttention";
import "./overview.css";

/** How all stands: what needs somebody first, then whether everything answers, then what flows. */
export function Overview() {
  const status = useStatus();
  const session = useSession();
  if (status.isPending) return <Spinner />;
  if (status.isError)
    return (
      <Page title="Overview">
        <ErrorNotice error={status.error} retry={() => void status.refetch()} />
      </Page>
    );
  const { tables, statements, attention, catalogs } = status.data;
  const isNew = tables.length === 0 && statements.length === 0;
  return (
    <Page title="Overview">
      {attention.length > 0 && <NeedsAttention items={attention} />}
      <Health status={status.data} catalogs={catalogs} />
      {isNew ? (
        <FirstRun />
      ) : (
        <>
          <Charts />
          <InShort tables={tables} statements={statements} />
        </>
      )}
      {session?.is_admin && !isNew && <Activity />}
    </Page>
  );
}
