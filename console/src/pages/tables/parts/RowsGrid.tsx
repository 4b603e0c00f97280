import type { Row } from "@/api/lake";
import { Clip } from "@/components/Clip";

/** A few rows of any query, with whatever columns they have. */
export function RowsGrid({ label, rows }: { label: string; rows: readonly Row[] }) {
  const columns = Object.keys(rows[0] ?? {});
  return (
    // Wide rows are scrolled to by keyboard too.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="rows-grid" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                <Clip text={column} mono />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column}>
                  <Cell value={row[column]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span className="nothing">NULL</span>;
  return <Clip text={typeof value === "string" ? value : JSON.stringify(value)} mono />;
}
