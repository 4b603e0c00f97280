import { useMemo } from "react";
import { useQuery } from "@tanstack/react-query";
import { layoutQuery, type Partition } from "@/api/tables";
import { Chart } from "@/components/Chart";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Bytes, Count, Stat, Stats } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { formatCount, formatShort, plural } from "@/lib/format";
import { partitionText, sizeBins } from "../figures";

const COLUMNS: readonly Column<Partition>[] = [
  {
    id: "partition",
    header: "Partition",
    cell: (one) => <Clip text={partitionText(one)} mono />,
    sort: (one) => partitionText(one),
    search: (one) => partitionText(one),
  },
  { id: "rows", header: "Rows", align: "right", cell: (one) => <Count value={one.rows} />, sort: (one) => one.rows },
  { id: "files", header: "Files", align: "right", cell: (one) => <Count value={one.files} />, sort: (one) => one.files },
  { id: "bytes", header: "Size", align: "right", cell: (one) => <Bytes value={one.bytes} />, sort: (one) => one.bytes },
  {
    id: "mean",
    header: "Mean file",
    align: "right",
    wideOnly: true,
    cell: (one) => <Bytes value={mean(one)} />,
    sort: mean,
  },
  { id: "deletes", header: "Delete files", align: "right", wideOnly: true, cell: (one) => <Count value={one.delete_files} />, sort: (one) => one.delete_files },
];

function mean({ bytes, files }: { bytes: number; files: number }): number | null {
  return files === 0 ? null : bytes / files;
}

/** How the newest snapshot is laid out: sizes of its files, and its partitions. */
export function Files({ topic }: { topic: string }) {
  const { data, error, refetch } = useQuery({ ...layoutQuery(topic), retry: false });
  const bins = useMemo(() => sizeBins(data?.sizes ?? []), [data]);
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Spinner />;
  return (
    <>
      {data.files > 0 && (
        <Panel title="File sizes" about="Of the data files of the newest snapshot.">
          <div className="stack">
            <Stats>
              <Stat label="Data files">
                <Count value={data.files} short />
              </Stat>
              <Stat label="Size">
                <Bytes value={data.bytes} />
              </Stat>
              <Stat label="Mean file">
                <Bytes value={mean(data)} />
              </Stat>
              <Stat label="Delete files">
                <Count value={data.delete_files} short />
              </Stat>
              <Stat label="Partitions">
                <Count value={data.partitions_total} short />
              </Stat>
            </Stats>
            <Chart
              label="Data files by size"
              kind="bar"
              categories={bins.map((bin) => bin.label)}
              series={[{ name: "Files", points: bins.map((bin, index) => [index, bin.files]) }]}
              format={formatShort}
              height={200}
            />
          </div>
        </Panel>
      )}
      <DataTable
        label="Partitions"
        rows={data.partitions}
        columns={COLUMNS}
        rowKey={(one) => `${one.spec_id} ${JSON.stringify(one.partition)}`}
        sorted="-partition"
        searchLabel="Search partitions"
        param="partitions"
        empty={
          <EmptyState title="No files yet" icon="tables">
            They come with the table&apos;s first rows.
          </EmptyState>
        }
      />
      {data.partitions_total > data.partitions.length && (
        <p className="faint small">
          The newest {formatCount(data.partitions.length)} of {plural(data.partitions_total, "partition")}.
        </p>
      )}
    </>
  );
}
