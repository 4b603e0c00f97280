import { useCan } from "@/api/session";
import { Page, Tabs } from "@/components/Page";
import { AuditTab } from "./AuditTab";
import { EventsTab } from "./EventsTab";
import "./activity.css";

/** What happened, and who did what. */
export function Activity() {
  const can = useCan();
  return (
    <Page title="Activity" about="What happened to tables, statements and the rest, and who has asked for what.">
      {can("admin") ? (
        <Tabs
          label="Activity"
          items={[
            { id: "events", label: "Events", panel: () => <EventsTab /> },
            { id: "audit", label: "Audit trail", panel: () => <AuditTab /> },
          ]}
        />
      ) : (
        <EventsTab />
      )}
    </Page>
  );
}
