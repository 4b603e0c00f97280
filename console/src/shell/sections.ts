import type { IconName } from "@/components/Icon";
import { paths } from "@/lib/paths";

export interface Section {
  label: string;
  href: string;
  icon: IconName;
  /** For admins of everything alone. */
  admin?: boolean;
}

/** The rail's entries, in their order. */
export const SECTIONS: readonly Section[] = [
  { label: "Overview", href: paths.overview(), icon: "overview" },
  { label: "Topics", href: paths.topics(), icon: "topics" },
  { label: "Tables", href: paths.tables(), icon: "tables" },
  { label: "Statements", href: paths.statements(), icon: "statements" },
  { label: "Integrations", href: paths.integrations(), icon: "integrations", admin: true },
  { label: "Exports", href: paths.exports(), icon: "exports", admin: true },
  { label: "Activity", href: paths.activity(), icon: "activity" },
  { label: "Settings", href: paths.settings(), icon: "settings", admin: true },
];
