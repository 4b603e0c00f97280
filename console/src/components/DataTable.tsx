import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import {
  getCoreRowModel,
  getFilteredRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type FilterFn,
  type Row as TableRow,
  type SortingState,
} from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useSearchParam } from "@/lib/search";
import { plural } from "@/lib/format";
import { SearchField } from "./Form";
import { Icon } from "./Icon";
import { useGo, NavLink } from "./NavLink";

export interface Column<Row> {
  id: string;
  header: string;
  cell: (row: Row) => ReactNode;
  /** What it is sorted by; a column without it is not sorted. Numbers begin with the largest. */
  sort?: (row: Row) => string | number | null | undefined;
  /** What a search looks at. */
  search?: (row: Row) => string;
  align?: "right";
  /** The least width that it keeps, as CSS has it. */
  width?: string;
  /** Left out of the cards that rows are at a phone's width. */
  wideOnly?: boolean;
  /** In the upper corner of those cards: a small button. */
  corner?: boolean;
}

interface Props<Row> {
  /** What the rows are, for screen readers: `Topics`. */
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  /** The page of a row: its first cell is a link to it, and a click anywhere on the row goes there. */
  href?: (row: Row) => string;
  /** What a click on a row does where it has no page. */
  onOpen?: (row: Row) => void;
  /** Sorted by this column at first; `-name` is downwards. */
  sorted?: string;
  /** A field to search in, with this label; what is typed is in the address. */
  searchLabel?: string;
  /** Where two tables are on a page: keeps their searches and orders apart. */
  param?: string;
  /** Beside the search. */
  tools?: ReactNode;
  /** Shown where there are no rows at all. */
  empty?: ReactNode;
  /** A row that stands out: what is selected. */
  selected?: (row: Row) => boolean;
}

const ROW_HEIGHT = 41;
const VIRTUAL_FROM = 80;

/** Rows that can be sorted and searched; thousands of them too. At a phone's width each is a card. */
export function DataTable<Row>(props: Props<Row>) {
  const { label, rows, columns, rowKey, href, onOpen, sorted = "", searchLabel, param = "", tools, empty, selected } = props;
  const [query, setQuery] = useSearchParam(`${param}q`);
  const [order, setOrder] = useSearchParam(`${param}sort`, sorted);
  const sorting: SortingState = order === "" ? [] : [{ id: order.replace(/^-/, ""), desc: order.startsWith("-") }];
  const definitions = useMemo(() => columns.map(definitionOf), [columns]);
  const table = useReactTable<Row>({
    data: rows as Row[],
    columns: definitions,
    getRowId: rowKey,
    state: { sorting, globalFilter: query },
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    getFilteredRowModel: getFilteredRowModel(),
    globalFilterFn: matchesAllWords(columns),
    getColumnCanGlobalFilter: () => true,
    // What changes by itself keeps its place while somebody reads.
    autoResetAll: false,
  });
  const shown = table.getRowModel().rows;
  const sortBy = (column: Column<Row>): void => {
    const down = `-${column.id}`;
    const first = rows.some((row) => typeof column.sort?.(row) === "number") ? [down, column.id] : [column.id, down];
    const [one = "", other = ""] = first;
    setOrder(order === one ? other : one);
  };
  if (rows.length === 0 && empty !== undefined)
    return (
      <div className="table-frame">
        {tools !== undefined && <div className="table-tools">{tools}</div>}
        {empty}
      </div>
    );
  return (
    <div className="table-frame">
      {(searchLabel !== undefined || tools !== undefined) && (
        <div className="table-tools">
          {searchLabel !== undefined && <SearchField label={searchLabel} value={query} onChange={setQuery} />}
          {tools}
          <span className="spacer" />
          <span className="faint" role="status">
            {shown.length === rows.length ? plural(rows.length, "row") : `${shown.length} of ${plural(rows.length, "row")}`}
          </span>
        </div>
      )}
      <table className="data-table" aria-label={label} aria-rowcount={shown.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.id} column={column} order={order} onSort={sortBy} />
            ))}
          </tr>
        </thead>
        <Body {...{ shown, columns, href, onOpen, selected }} />
      </table>
      {shown.length === 0 && (
        <p className="no-match">
          Nothing matches <bdi>“{query}”</bdi>.
        </p>
      )}
    </div>
  );
}

function definitionOf<Row>(column: Column<Row>): ColumnDef<Row> {
  const { sort } = column;
  return {
    id: column.id,
    accessorFn: (row) => sort?.(row) ?? undefined,
    enableSorting: sort !== undefined,
    sortUndefined: "last",
    sortingFn: (a, b, id) => compare(a.getValue(id), b.getValue(id)),
  };
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function compare(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a), String(b));
}

/** Every word that was typed is somewhere in the row. */
function matchesAllWords<Row>(columns: readonly Column<Row>[]): FilterFn<Row> {
  const searched = columns.flatMap((column) => (column.search === undefined ? [] : [column.search]));
  return (row, _, query: string) => {
    const text = searched.map((search) => search(row.original)).join("\n").toLowerCase();
    return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };
}

function Head<Row>({ column, order, onSort }: { column: Column<Row>; order: string; onSort: (column: Column<Row>) => void }) {
  const direction = order === column.id ? "ascending" : order === `-${column.id}` ? "descending" : undefined;
  const style = column.width === undefined ? undefined : { inlineSize: column.width };
  const className = column.align === "right" ? "right" : undefined;
  if (column.sort === undefined)
    return (
      <th scope="col" className={className} style={style}>
        {column.header === "" ? <span className="visually-hidden">Actions</span> : column.header}
      </th>
    );
  return (
    <th scope="col" className={className} style={style} aria-sort={direction ?? "none"}>
      <button
        type="button"
        className="sort"
        onClick={() => {
          onSort(column);
        }}
      >
        {column.header}
        <span className={direction === undefined ? "sort-mark" : "sort-mark on"}>
          <Icon name={direction === "ascending" ? "up" : "down"} size={12} />
        </span>
      </button>
    </th>
  );
}

interface BodyProps<Row> {
  shown: readonly TableRow<Row>[];
  columns: readonly Column<Row>[];
  href: ((row: Row) => string) | undefined;
  onOpen: ((row: Row) => void) | undefined;
  selected: ((row: Row) => boolean) | undefined;
}

function Body<Row>(props: BodyProps<Row>) {
  const { shown, columns } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  const virtual = shown.length >= VIRTUAL_FROM;
  useArrowKeys(body);
  useEffect(() => {
    if (body.current !== null) setTop(body.current.getBoundingClientRect().top + window.scrollY);
  }, [virtual]);
  const rows = useWindowVirtualizer({
    count: shown.length,
    estimateSize: () => ROW_HEIGHT,
    getItemKey: (index) => shown[index]?.id ?? index,
    overscan: 12,
    scrollMargin: top,
    enabled: virtual,
  });
  if (!virtual)
    return (
      <tbody ref={body}>
        {shown.map((row, index) => (
          <BodyRow key={row.id} row={row} index={index} {...props} />
        ))}
      </tbody>
    );
  const items = rows.getVirtualItems();
  const before = (items[0]?.start ?? top) - top;
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top);
  return (
    <tbody ref={body}>
      <Space height={before} columns={columns.length} />
      {items.map((item) => {
        const row = shown[item.index];
        return row && <BodyRow key={row.id} row={row} index={item.index} measure={rows.measureElement} {...props} />;
      })}
      <Space height={after} columns={columns.length} />
    </tbody>
  );
}

/** Stands for rows that are not drawn as they are not in sight. */
function Space({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true" className="space">
      <td colSpan={columns} style={{ blockSize: height }} />
    </tr>
  );
}

interface RowProps<Row> extends BodyProps<Row> {
  row: TableRow<Row>;
  index: number;
  measure?: (element: Element | null) => void;
}

function BodyRow<Row>({ row, index, columns, href, onOpen, selected, measure }: RowProps<Row>) {
  const go = useGo();
  const content = row.original;
  const opens = href !== undefined || onOpen !== undefined;
  const open = (): void => {
    if (href !== undefined) go(href(content));
    else onOpen?.(content);
  };
  return (
    // The first cell has the link or button that the keyboard uses; the rest of the row is for the pointer alone.
    <tr
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      className={`${opens ? "opens" : ""}${selected?.(content) ? " selected" : ""}`}
      onClick={
        opens
          ? (event) => {
              if (!isForItself(event.target) && getSelection()?.isCollapsed !== false) open();
            }
          : undefined
      }
    >
      {columns.map((column, at) => {
        const cell = column.cell(content);
        const first = at === 0 && opens;
        return (
          <td
            key={column.id}
            data-label={column.header}
            className={`${column.align ?? ""}${column.wideOnly ? " wide-only" : ""}${column.corner ? " corner" : ""}${at === 0 ? " first" : ""}`}
          >
            {!first ? (
              cell
            ) : href !== undefined ? (
              <NavLink className="row-link" href={href(content)}>
                {cell}
              </NavLink>
            ) : (
              <button type="button" className="row-link" onClick={open}>
                {cell}
              </button>
            )}
          </td>
        );
      })}
    </tr>
  );
}

/** Whether a click was on something in the row that has a meaning of its own. */
function isForItself(target: EventTarget): boolean {
  return target instanceof Element && target.closest("a, button, input, select, label, summary, [role=menu]") !== null;
}

/** Up and down go from row to row, along the links of the first cells. */
function useArrowKeys(body: React.RefObject<HTMLTableSectionElement | null>): void {
  useEffect(() => {
    const element = body.current;
    if (element === null) return;
    const move = (event: KeyboardEvent): void => {
      if (!(event.target instanceof Element) || !event.target.classList.contains("row-link")) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step === undefined) return;
      const links = [...element.querySelectorAll<HTMLElement>(".row-link")];
      const next = links[links.findIndex((link) => link === event.target) + step];
      if (next === undefined) return;
      event.preventDefault();
      next.focus();
    };
    element.addEventListener("keydown", move);
    return () => {
      element.removeEventListener("keydown", move);
    };
  });
}
