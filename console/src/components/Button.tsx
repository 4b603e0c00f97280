import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import { NavLink } from "./NavLink";

type Kind = "primary" | "plain" | "quiet" | "danger";

interface Looks {
  kind?: Kind;
  icon?: IconName;
  small?: boolean;
  children?: ReactNode;
}

interface Props extends Looks, ButtonHTMLAttributes<HTMLButtonElement> {
  /** Shows that it is under way, and takes no second press. */
  busy?: boolean;
}

export function Button({ kind = "plain", icon, small = false, busy = false, children, disabled, ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${kind}${small ? " small" : ""} ${rest.className ?? ""}`}
      disabled={disabled === true || busy}
      aria-busy={busy || undefined}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button of an icon alone: its label is said to screen readers, and shown on hover. */
export function IconButton({ label, icon, ...rest }: { label: string; icon: IconName } & Omit<Props, "icon" | "children">) {
  return <Button kind="quiet" {...rest} icon={icon} aria-label={label} title={label} className={`icon-only ${rest.className ?? ""}`} />;
}

/** A link that looks like a button. */
export function ButtonLink({ href, kind = "plain", icon, small = false, children }: Looks & { href: string }) {
  return (
    <NavLink href={href} className={`button ${kind}${small ? " small" : ""}`}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </NavLink>
  );
}
