import { lazy, Suspense } from "react";
import type { ChartProps } from "./EChart";

export type { ChartProps, ChartSeries } from "./EChart";

const EChart = lazy(() => import("./EChart"));

/** A chart; the library that draws it is loaded with the first one. */
export function Chart(props: ChartProps) {
  return (
    <Suspense fallback={<div className="chart" style={{ blockSize: props.height ?? 200 }} />}>
      <EChart {...props} />
    </Suspense>
  );
}
