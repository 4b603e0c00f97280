import { useMemo } from "react";
import type { Figures, Sample } from "@/api/model";
import { useSamples } from "@/api/status";
import { Chart } from "@/components/Chart";
import { Panel } from "@/components/Page";
import { useNow } from "@/lib/clock";
import { formatDuration, formatShort, NONE } from "@/lib/format";

const SPAN_MS = 3_600_000;

/** Rows per second, lag and freshness of all tables over the last hour, as they go on. */
export function Charts() {
  const samples = useSamples().data ?? [];
  const latest = samples.at(-1)?.total;
  return (
    <div className="overview-charts">
      <Figure
        title="Rows per second"
        hint="Into all tables together"
        value={latest?.rate == null ? NONE : formatShort(latest.rate)}
        samples={samples}
        pick={(figures) => figures.rate}
        format={formatShort}
      />
      <Figure
        title="Lag"
        hint="Records that are still to be read"
        value={latest?.lag == null ? NONE : `${formatShort(latest.lag)} records`}
        samples={samples}
        pick={(figures) => figures.lag}
        format={formatShort}
      />
      <Figure
        title="Freshness"
        hint="The longest that a record has been waiting"
        value={latest?.freshness == null ? NONE : formatDuration(latest.freshness)}
        samples={samples}
        pick={(figures) => figures.freshness}
        format={formatDuration}
      />
    </div>
  );
}

interface FigureProps {
  title: string;
  hint?: string;
  value: string;
  samples: readonly Sample[];
  pick: (figures: Figures) => number | null;
  format: (value: number) => string;
}

function Figure({ title, hint, value, samples, pick, format }: FigureProps) {
  const now = useNow() * 1000;
  const points = useMemo(
    () => samples.map((sample) => [sample.at * 1000, pick(sample.total)] as const),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- pick is the same function each time
    [samples],
  );
  return (
    <Panel title={title} about={hint} actions={<span className="overview-now">{value}</span>}>
      {points.length < 2 ? (
        <p className="overview-gathering">Gathering: the first minute is drawn in a moment.</p>
      ) : (
        <Chart
          label={`${title}, the last hour`}
          kind="area"
          series={[{ name: title, points }]}
          span={[Math.max(now - SPAN_MS, points[0]?.[0] ?? 0), Math.max(now, points.at(-1)?.[0] ?? 0)]}
          format={format}
          height={150}
        />
      )}
    </Panel>
  );
}
