import { useMemo } from "react";
import { useQuery } from "@tanstack/react-query";
import { filesQuery, partitionsQuery, type PartitionRow } from "@/api/tables";
import { Chart } from "@/components/Chart";
import { Clip } from "@/components/Clip";
import { DataTable, type Column } from "@/components/DataTable";
import { Bytes, Count, Stat, Stats } from "@/components/Figures";
import { EmptyState, ErrorNotice, Spinner } from "@/components/Notices";
import { Panel } from "@/components/Page";
import { formatShort } from "@/lib/format";
import { partitionText, sizeBins } from "../figures";

const COLUMNS: readonly Column<PartitionRow>[] = [
  {
    id: "partition",
    header: "Partition",
    cell: (one) => <Clip text={partitionText(one)} mono />,
    sort: (one) => partitionText(one),
    search: (one) => partitionText(one),
  },
  { id: "rows", header: "Rows", align: "right", cell: (one) => <Count value={one.record_count} />, sort: (one) => one.record_count },
  { id: "files", header: "Files", align: "right", cell: (one) => <Count value={one.file_count} />, sort: (one) => one.file_count },
  { id: "bytes", header: "Size", align: "right", cell: (one) => <Bytes value={one.total_size} />, sort: (one) => one.total_size },
  {
    id: "mean",
    header: "Mean file",
    align: "right",
    wideOnly: true,
    cell: (one) => <Bytes value={one.file_count === 0 ? null : one.total_size / one.file_count} />,
    sort: (one) => (one.file_count === 0 ? null : one.total_size / one.file_count),
  },
  { id: "deletes", header: "Delete files", align: "right", wideOnly: true, cell: (one) => <Count value={one.delete_file_count} />, sort: (one) => one.delete_file_count },
];

/** How the newest snapshot is laid out. */
export function Files({ topic }: { topic: string }) {
  return (
    <>
      <Sizes topic={topic} />
      <Partitions topic={topic} />
    </>
  );
}

function Sizes({ topic }: { topic: string }) {
  const { data, error } = useQuery({ ...filesQuery(topic), retry: false });
  const files = useMemo(() => data?.filter((one) => one.content === "DATA"), [data]);
  const bins = useMemo(() => sizeBins(files ?? []), [files]);
  // The list below says what went wrong.
  if (error !== null) return null;
  if (data === undefined || files === undefined) return <Spinner />;
  if (files.length === 0) return null;
  const sizes = files.map((one) => one.file_size_in_bytes).sort((a, b) => a - b);
  return (
    <Panel title="File sizes" about="Of the data files of the newest snapshot.">
      <div className="stack">
        <Stats>
          <Stat label="Data files">
            <Count value={files.length} short />
          </Stat>
          <Stat label="Smallest">
            <Bytes value={sizes[0]} />
          </Stat>
          <Stat label="Median">
            <Bytes value={sizes[Math.floor(sizes.length / 2)]} />
          </Stat>
          <Stat label="Largest">
            <Bytes value={sizes.at(-1)} />
          </Stat>
          <Stat label="Delete files">
            <Count value={data.length - files.length} />
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
  );
}

function Partitions({ topic }: { topic: string }) {
  const { data, error, refetch } = useQuery({ ...partitionsQuery(topic), retry: false });
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  if (data === undefined) return <Spinner />;
  return (
    <DataTable
      label="Partitions"
      rows={data}
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
  );
}
