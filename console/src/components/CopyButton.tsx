import { useEffect, useState } from "react";
import { Button, IconButton } from "./Button";
import { useToast } from "./Toast";

/** Copies a text; for a moment it says that it has. With `label` it is a button with words. */
export function CopyButton({ text, label, what = "" }: { text: string; label?: string; what?: string }) {
  const [copied, setCopied] = useState(false);
  const toast = useToast();
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => {
      setCopied(false);
    }, 1600);
    return () => {
      clearTimeout(timer);
    };
  }, [copied]);
  const copy = (): void => {
    copyText(text).then(
      () => {
        setCopied(true);
      },
      () => {
        toast.bad("The browser does not let this page copy.", "Select the text and copy it yourself.");
      },
    );
  };
  const icon = copied ? "check" : "copy";
  if (label !== undefined)
    return (
      <Button icon={icon} small onClick={copy}>
        {copied ? "Copied" : label}
      </Button>
    );
  return <IconButton small icon={icon} label={copied ? "Copied" : `Copy${what ? ` ${what}` : ""}`} onClick={copy} />;
}

/** Without https or localhost, browsers have no clipboard for pages; the old way still works there. */
async function copyText(text: string): Promise<void> {
  if (globalThis.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other way without https
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("not copied");
}
