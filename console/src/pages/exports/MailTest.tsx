import { useState } from "react";
import { useAct } from "@/api/act";
import { testMail, type ShownExport } from "@/api/exports";
import { Button } from "@/components/Button";
import { Clip } from "@/components/Clip";
import { Dialog } from "@/components/Dialog";
import { TextField } from "@/components/Form";
import { ErrorNotice, Notice } from "@/components/Notices";

interface Props {
  export: ShownExport;
  open: boolean;
  onClose: () => void;
}

/** Sends a test mail, and says what the mail server said. */
export function MailTest({ export: one, open, onClose }: Props) {
  return (
    <Dialog title="Send a test mail" open={open} onClose={onClose}>
      <MailForm export={one} onClose={onClose} />
    </Dialog>
  );
}

function MailForm({ export: one, onClose }: Omit<Props, "open">) {
  const recipients = one.spec.mail?.to ?? [];
  const [to, setTo] = useState("");
  const addresses = to.split(/[\s,;]+/).filter(Boolean);
  const send = useAct({ run: () => testMail(one.name, addresses), quiet: true });
  const ready = addresses.length > 0 || recipients.length > 0;
  const refused = Object.entries(send.data?.refused ?? {});
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) send.mutate();
      }}
    >
      <div className="dialog-body">
        <p className="faint">No file is made: it tries the mail server of the configuration.</p>
        <TextField
          label="To"
          optional={recipients.length > 0}
          value={to}
          onChange={setTo}
          placeholder={recipients.length > 0 ? recipients.join(", ") : "name@example.org"}
          hint={recipients.length > 0 ? "Without one, those whom the export tells." : "The export tells nobody by itself."}
        />
        {send.error !== null && <ErrorNotice title="It was not sent" error={send.error} />}
        {send.data !== undefined && send.data.to.length > 0 && (
          <Notice tone="good" title="Sent">
            <Clip text={send.data.to.join(", ")} lines={3} />
          </Notice>
        )}
        {refused.map(([address, reason]) => (
          <Notice key={address} tone="bad" title="Refused">
            <p>
              <Clip text={address} />: <Clip text={reason} lines={3} />
            </p>
          </Notice>
        ))}
      </div>
      <footer>
        <Button onClick={onClose}>Close</Button>
        <Button type="submit" kind="primary" icon="send" disabled={!ready} busy={send.isPending}>
          Send
        </Button>
      </footer>
    </form>
  );
}
