import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { Button, IconButton } from "./Button";
import { ErrorNotice } from "./Notices";

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  /** Wider, for forms and code. */
  wide?: boolean;
}

/** A dialog over the page: Escape closes it, and the focus comes back to where it was. */
export function Dialog({ title, open, onClose, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog === null) return;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return (
    <dialog
      ref={element}
      className={wide ? "dialog wide" : "dialog"}
      aria-labelledby={heading}
      onClose={onClose}
      onCancel={onClose}
    >
      {open && (
        <>
          <header>
            <h2 id={heading}>{title}</h2>
            <IconButton icon="close" label="Close" onClick={onClose} />
          </header>
          {children}
        </>
      )}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  open: boolean;
  onClose: () => void;
  onConfirm: () => void;
  /** What the button that does it says: `Delete the topic`. */
  confirm: string;
  /** What must be typed first, where data is lost. */
  typed?: string;
  danger?: boolean;
  busy?: boolean;
  error?: unknown;
  children: ReactNode;
}

/** Asks before something is done; with `typed` its name must be typed first. */
export function ConfirmDialog({ confirm, typed, danger = false, busy = false, error, onConfirm, children, ...rest }: ConfirmProps) {
  return (
    <Dialog {...rest}>
      <ConfirmForm confirm={confirm} typed={typed} danger={danger} busy={busy} error={error} onConfirm={onConfirm} onClose={rest.onClose}>
        {children}
      </ConfirmForm>
    </Dialog>
  );
}

type FormProps = Pick<ConfirmProps, "confirm" | "onConfirm" | "onClose" | "children" | "error"> & {
  typed: string | undefined;
  danger: boolean;
  busy: boolean;
};

function ConfirmForm({ confirm, typed, danger, busy, error, onConfirm, onClose, children }: FormProps) {
  const [text, setText] = useState("");
  const id = useId();
  const ready = typed === undefined || text === typed;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (ready && !busy) onConfirm();
      }}
    >
      <div className="dialog-body">
        {children}
        {typed !== undefined && (
          <div className="field">
            <label htmlFor={id}>
              Type <code dir="auto">{typed}</code> to confirm
            </label>
            <input
              id={id}
              value={text}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => {
                setText(event.target.value);
              }}
            />
          </div>
        )}
        {error !== undefined && error !== null && <ErrorNotice error={error} />}
      </div>
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind={danger || typed !== undefined ? "danger" : "primary"} disabled={!ready} busy={busy}>
          {confirm}
        </Button>
      </footer>
    </form>
  );
}
