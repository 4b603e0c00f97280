import { EmptyState } from "@/components/Notices";
import { Page } from "@/components/Page";

/** In place of a page that is for admins of everything: its address may have been sent to somebody else. */
export function AdminsOnly({ title, what }: { title: string; what: string }) {
  return (
    <Page title={title}>
      <EmptyState icon="lock" title="For admins">
        {what} are for admins of everything. Ask one, or sign in with a credential that has that role.
      </EmptyState>
    </Page>
  );
}
