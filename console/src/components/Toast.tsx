import { createContext, use, useCallback, useMemo, useRef, useState, type ReactNode } from "react";
import { IconButton } from "./Button";
import { Icon } from "./Icon";

interface Shown {
  id: number;
  tone: "good" | "bad";
  message: string;
  remedy: string;
}

interface Toasts {
  /** Says that something was done. */
  good: (message: string) => void;
  /** Says that something failed, and what to do; stays until it is closed. */
  bad: (message: string, remedy?: string) => void;
}

const Context = createContext<Toasts | null>(null);
const SHOWN_MS = 5000;
const MOST = 4;

export function useToast(): Toasts {
  const toasts = use(Context);
  if (toasts === null) throw new Error("useToast is for what stands inside ToastProvider");
  return toasts;
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<readonly Shown[]>([]);
  const next = useRef(0);
  const close = useCallback((id: number) => {
    setShown((before) => before.filter((one) => one.id !== id));
  }, []);
  const toasts = useMemo<Toasts>(() => {
    const add = (tone: Shown["tone"], message: string, remedy: string): void => {
      const id = next.current++;
      setShown((before) => [...before.filter((one) => one.message !== message), { id, tone, message, remedy }].slice(-MOST));
      if (tone === "good")
        setTimeout(() => {
          close(id);
        }, SHOWN_MS);
    };
    return {
      good: (message) => {
        add("good", message, "");
      },
      bad: (message, remedy = "") => {
        add("bad", message, remedy);
      },
    };
  }, [close]);
  return (
    <Context value={toasts}>
      {children}
      <div className="toasts" aria-live="polite">
        {shown.map((one) => (
          <div key={one.id} className={`toast ${one.tone}`} role={one.tone === "bad" ? "alert" : undefined}>
            <Icon name={one.tone === "good" ? "check" : "warning"} />
            <div>
              <p>
                <bdi>{one.message}</bdi>
              </p>
              {one.remedy && (
                <p className="remedy">
                  <bdi>{one.remedy}</bdi>
                </p>
              )}
            </div>
            <IconButton
              small
              icon="close"
              label="Close"
              onClick={() => {
                close(one.id);
              }}
            />
          </div>
        ))}
      </div>
    </Context>
  );
}
