import { useState } from "react";
import { useAct } from "@/api/act";
import { EXPORTS, runExport, type ShownExport } from "@/api/exports";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { TextField, Tiles } from "@/components/Form";
import { ErrorNotice } from "@/components/Notices";

interface Props {
  export: ShownExport;
  open: boolean;
  onClose: () => void;
}

/** Asks what a run is to be about: the last whole period, or a time. */
export function RunNow({ export: one, open, onClose }: Props) {
  return (
    <Dialog title="Run now" open={open} onClose={onClose}>
      <RunForm export={one} onClose={onClose} />
    </Dialog>
  );
}

function RunForm({ export: one, onClose }: Omit<Props, "open">) {
  const [about, setAbout] = useState<"last" | "time">("last");
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const run = useAct({
    run: () => runExport(one.name, about === "time" ? { from, to } : undefined),
    done: () => `${one.name} runs.`,
    refresh: [[...EXPORTS]],
    quiet: true,
    then: onClose,
  });
  const ready = about === "last" || (from !== "" && to !== "" && from < to);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) run.mutate();
      }}
    >
      <div className="dialog-body">
        <Tiles
          label="What it is about"
          value={about}
          onChange={setAbout}
          tiles={[
            { value: "last", label: "The last period", description: "As its schedule would, whole and over." },
            { value: "time", label: "A time", description: "From one moment to another." },
          ]}
        />
        {about === "time" && (
          <div className="pair">
            <TextField
              label="From"
              type="datetime-local"
              value={from}
              onChange={setFrom}
              hint={`In ${one.zone}.`}
              required
            />
            <TextField
              label="To"
              type="datetime-local"
              value={to}
              onChange={setTo}
              hint="The end is not in it."
              error={from !== "" && to !== "" && from >= to ? "It ends before it begins." : undefined}
              required
            />
          </div>
        )}
        {run.error !== null && <ErrorNotice error={run.error} />}
      </div>
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={!ready} busy={run.isPending}>
          Run
        </Button>
      </footer>
    </form>
  );
}
