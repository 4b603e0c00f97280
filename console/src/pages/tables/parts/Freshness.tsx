import { Duration } from "@/components/Figures";

/** How long the oldest record has been waiting; a table that has them all is caught up. */
export function Freshness({ seconds }: { seconds: number | null }) {
  return seconds === 0 ? <span title="Nothing is waiting">caught up</span> : <Duration seconds={seconds} />;
}
