interface Props {
  /** The newest last; null where nothing is known. */
  values: readonly (number | null)[];
  /** What it shows, for screen readers. */
  label: string;
  width?: number;
  height?: number;
}

/** The course of a figure, as small as a word. */
export function Sparkline({ values, label, width = 96, height = 24 }: Props) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return <span className="nothing">–</span>;
  const top = Math.max(...known, 1e-9);
  const step = width / (values.length - 1);
  const place = (value: number): number => height - 2 - (value / top) * (height - 4);
  const lines = segments(values).map((segment) =>
    segment.map(([index, value]) => `${(index * step).toFixed(1)},${place(value).toFixed(1)}`).join(" "),
  );
  return (
    <svg className="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {lines.map((points) => (
        <polyline key={points} points={points} fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinejoin="round" />
      ))}
    </svg>
  );
}

/** The runs of known values, each with its index: a gap stays a gap. */
function segments(values: readonly (number | null)[]): [number, number][][] {
  const found: [number, number][][] = [];
  let open: [number, number][] | undefined;
  values.forEach((value, index) => {
    if (value === null) {
      open = undefined;
      return;
    }
    if (open === undefined) {
      open = [];
      found.push(open);
    }
    open.push([index, value]);
  });
  return found;
}
