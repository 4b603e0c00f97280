import { ButtonLink } from "@/components/Button";
import { EmptyState } from "@/components/Notices";
import { Page } from "@/components/Page";
import { paths } from "@/lib/paths";

export function NotFound() {
  return (
    <Page title="No such page">
      <EmptyState title="There is nothing at this address" icon="search" action={<ButtonLink href={paths.overview()}>To the overview</ButtonLink>}>
        It may have been deleted, or the link is not whole.
      </EmptyState>
    </Page>
  );
}
