import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from "react";
import { useRouter } from "@tanstack/react-router";

interface Props extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  /** One of the console's own addresses: see `paths`. */
  href: string;
  children: ReactNode;
}

/** A link to a page of the console: a real one, that opens without loading everything again. */
export function NavLink({ href, onClick, children, ...rest }: Props) {
  const router = useRouter();
  const go = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    router.history.push(href);
  };
  return (
    <a {...rest} href={href} onClick={go}>
      {children}
    </a>
  );
}

/** Goes to one of the console's own addresses. */
export function useGo(): (href: string, options?: { replace?: boolean }) => void {
  const router = useRouter();
  return (href, options) => {
    if (options?.replace) router.history.replace(href);
    else router.history.push(href);
  };
}
