import { useSyncExternalStore } from "react";

/** A value that this browser keeps: the theme, favourite topics. Nothing of it is sent anywhere. */
export class Stored<Value> {
  private readonly key: string;
  private readonly parse: (text: string | null) => Value;
  private readonly listeners = new Set<() => void>();
  private text: string | null;
  private value: Value;

  constructor(name: string, parse: (text: string | null) => Value) {
    this.key = `headgate.${name}`;
    this.parse = parse;
    this.text = read(this.key);
    this.value = parse(this.text);
    // Other tabs of the same browser follow.
    globalThis.addEventListener("storage", (event) => {
      if (event.key === this.key) this.take(event.newValue);
    });
  }

  get = (): Value => this.value;

  set(text: string | null): void {
    try {
      if (text === null) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, text);
    } catch {
      // A browser that keeps nothing still follows until the page is left.
    }
    this.take(text);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  private take(text: string | null): void {
    if (text === this.text) return;
    this.text = text;
    this.value = this.parse(text);
    for (const listener of this.listeners) listener();
  }
}

export function useStored<Value>(stored: Stored<Value>): Value {
  return useSyncExternalStore(stored.subscribe, stored.get);
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
