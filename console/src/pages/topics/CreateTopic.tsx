import { useState } from "react";
import { useAct } from "@/api/act";
import { createTopic } from "@/api/topics";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { CheckField, TextField } from "@/components/Form";
import { useGo } from "@/components/NavLink";
import { ErrorNotice } from "@/components/Notices";
import { paths } from "@/lib/paths";

/** A new topic: its name, its partitions. */
export function CreateTopic({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title="Create a topic" open={open} onClose={onClose}>
      <CreateForm onClose={onClose} />
    </Dialog>
  );
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("4");
  const [compacted, setCompacted] = useState(false);
  const go = useGo();
  const create = useAct({
    run: () =>
      createTopic({
        name,
        partitions: Number(partitions),
        config: compacted ? { "cleanup.policy": "compact" } : {},
      }),
    done: () => `Topic ${name} is there`,
    refresh: [["topics"]],
    quiet: true,
    then: () => {
      onClose();
      go(paths.topic(name));
    },
  });
  const wrongName = name !== "" && !/^[a-zA-Z0-9._-]{1,249}$/.test(name);
  const wrongCount = !/^[1-9]\d{0,4}$/.test(partitions);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <div className="dialog-body">
        <TextField
          label="Name"
          value={name}
          onChange={setName}
          required
          error={wrongName ? "Letters, digits, dots, dashes and underscores; 249 at most." : undefined}
        />
        <TextField
          label="Partitions"
          value={partitions}
          onChange={setPartitions}
          inputMode="numeric"
          hint="How many can be read side by side. It can grow later, not shrink."
          error={wrongCount ? "A whole number, 1 or more." : undefined}
        />
        <CheckField
          label="Compacted"
          hint="Kafka keeps the last record of each key. Its table is an upsert table."
          checked={compacted}
          onChange={setCompacted}
        />
        {create.isError && <ErrorNotice error={create.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" busy={create.isPending} disabled={name === "" || wrongName || wrongCount}>
          Create
        </Button>
      </footer>
    </form>
  );
}
