import { Time } from "@/components/Figures";
import { secondsOf } from "./times";

/** When an export runs next; none while it is paused. */
export function NextRun({ next }: { next: string | null }) {
  if (next === null) return <span className="faint">paused</span>;
  return <Time at={secondsOf(next)} />;
}
