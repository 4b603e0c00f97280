import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

export interface MenuItem {
  label: string;
  icon?: IconName;
  danger?: boolean;
  disabled?: boolean;
  onSelect: () => void;
}

interface Props {
  /** What the button says to screen readers, and on hover. */
  label: string;
  button: ReactNode;
  items: readonly MenuItem[];
  /** What stands above the items, and is no choice. */
  head?: ReactNode;
  className?: string;
}

/** A button that opens a list of actions; the arrow keys move in it, Escape closes it. */
export function Menu({ label, button, items, head, className = "button quiet icon-only" }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const outside = (event: PointerEvent): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    root.current?.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
    return () => {
      document.removeEventListener("pointerdown", outside);
    };
  }, [open]);
  const close = (): void => {
    setOpen(false);
    opener.current?.focus();
  };
  const move = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
      return;
    }
    const found = [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
    const at = found.findIndex((item) => item === document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: found.length - 1 }[event.key];
    if (next === undefined || found.length === 0) return;
    event.preventDefault();
    found[(next + found.length) % found.length]?.focus();
  };
  return (
    <div className="menu" ref={root}>
      <button
        ref={opener}
        type="button"
        className={className}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={label}
        title={label}
        onClick={() => {
          setOpen(!open);
        }}
      >
        {button}
      </button>
      {open && (
        <div className="menu-list">
          {head}
          <div role="menu" id={id} aria-label={label} onKeyDown={move} tabIndex={-1}>
            {items.map((item) => (
              <button
                key={item.label}
                type="button"
                role="menuitem"
                tabIndex={-1}
                className={item.danger ? "danger" : undefined}
                disabled={item.disabled}
                onClick={() => {
                  close();
                  item.onSelect();
                }}
              >
                {item.icon !== undefined && <Icon name={item.icon} />}
                {item.label}
              </button>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}
