import { useEffect, useRef } from "react";
import { BarChart, LineChart } from "echarts/charts";
import { AriaComponent, GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { init, use as register, type ECharts, type EChartsCoreOption } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { theme } from "@/lib/theme";

register([LineChart, BarChart, GridComponent, TooltipComponent, LegendComponent, AriaComponent, CanvasRenderer]);

export interface ChartSeries {
  name: string;
  /** Pairs of x and y: x in milliseconds since 1970 on an axis of time, or a category's place. */
  points: readonly (readonly [number, number | null])[];
}

export interface ChartProps {
  /** What it shows, for screen readers. */
  label: string;
  kind?: "line" | "area" | "bar";
  series: readonly ChartSeries[];
  /** The names along the x axis; without them it is time. */
  categories?: readonly string[];
  /** How values are written, on the axis and on hover. */
  format?: (value: number) => string;
  /** The span of time that is shown, in milliseconds since 1970. */
  span?: readonly [number, number];
  height?: number;
}

/** Drawn by ECharts on a canvas: with no markup of its own, as the content security policy wants it. */
export default function EChart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts>(null);
  const latest = useRef(props);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const drawn = init(element, null, { renderer: "canvas" });
    chart.current = drawn;
    const redraw = (): void => {
      drawn.setOption(optionOf(latest.current, coloursOf(element)), { notMerge: true });
    };
    const resized = new ResizeObserver(() => {
      drawn.resize();
    });
    resized.observe(element);
    const unfollow = theme.subscribe(redraw);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => {
      system.removeEventListener("change", redraw);
      unfollow();
      resized.disconnect();
      drawn.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(() => {
    latest.current = props;
    if (place.current !== null) chart.current?.setOption(optionOf(props, coloursOf(place.current)), { notMerge: true });
  });
  return <div className="chart" ref={place} role="img" aria-label={props.label} style={{ blockSize: props.height ?? 200 }} />;
}

interface Colours {
  font: string;
  text: string;
  line: string;
  surface: string;
  series: string[];
}

/** The page's own colours, as the canvas needs them. */
function coloursOf(element: HTMLElement): Colours {
  const probe = document.createElement("span");
  element.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    font: getComputedStyle(element).fontFamily,
    text: colour("text-3"),
    line: colour("border"),
    surface: colour("surface"),
    series: ["chart-1", "chart-2", "chart-3", "chart-4", "chart-5", "chart-6"].map(colour),
  };
  probe.remove();
  return colours;
}

function optionOf(props: ChartProps, colours: Colours): EChartsCoreOption {
  const { series, categories, kind = "line", span, format = String } = props;
  const label = { color: colours.text, fontSize: 11, fontFamily: colours.font };
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  return {
    animation: !still && kind === "bar",
    color: colours.series,
    grid: { left: 8, right: 12, top: series.length > 1 ? 30 : 12, bottom: 4, containLabel: true },
    legend: series.length > 1 ? { top: 0, left: 0, itemWidth: 10, itemHeight: 10, icon: "roundRect", textStyle: label } : undefined,
    tooltip: {
      trigger: "axis",
      // Drawn on the canvas; the other way would put markup with styles of its own into the page.
      renderMode: "richText",
      backgroundColor: colours.surface,
      borderColor: colours.line,
      textStyle: { ...label, color: colours.text },
      valueFormatter: (value: unknown) => (typeof value === "number" ? format(value) : "–"),
      axisPointer: { lineStyle: { color: colours.line } },
      confine: true,
    },
    xAxis:
      categories === undefined
        ? {
            type: "time",
            min: span?.[0],
            max: span?.[1],
            axisLabel: { ...label, hideOverlap: true },
            axisLine: { lineStyle: { color: colours.line } },
            axisTick: { show: false },
            splitLine: { show: false },
          }
        : {
            type: "category",
            data: [...categories],
            axisLabel: { ...label, hideOverlap: true },
            axisLine: { lineStyle: { color: colours.line } },
            axisTick: { show: false },
          },
    yAxis: {
      type: "value",
      min: 0,
      splitNumber: 3,
      axisLabel: { ...label, formatter: format },
      splitLine: { lineStyle: { color: colours.line, type: "dashed" } },
    },
    series: series.map((one, index) => ({
      name: one.name,
      type: kind === "bar" ? "bar" : "line",
      data: categories === undefined ? one.points : one.points.map(([, value]) => value),
      showSymbol: false,
      connectNulls: false,
      lineStyle: { width: 1.75 },
      areaStyle: kind === "area" ? { opacity: series.length > 1 ? 0.06 : 0.12 } : undefined,
      itemStyle: kind === "bar" ? { borderRadius: [3, 3, 0, 0] } : undefined,
      barMaxWidth: 36,
      z: series.length - index,
    })),
  };
}
