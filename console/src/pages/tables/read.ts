import { pythonText, sparkName, sparkText, sqlName, sqlText } from "@/lib/quote";

/** How other engines read a table: recipes with its own address and names. */

export interface Readable {
  /** Of the Iceberg catalog. */
  address: string;
  cluster: string;
  topic: string;
  /** Where its files lie; null before it was made. */
  location: string | null;
  formats: readonly string[];
  formatVersion: number | null;
}

export interface Recipe {
  id: string;
  label: string;
  /** What must be there first, or what to know. */
  note?: string;
  blocks: readonly { label: string; text: string }[];
}

/** Stand for a credential's parts: a secret is shown once, when it is created, and nowhere else. */
const CLIENT = { id: "CLIENT_ID", secret: "CLIENT_SECRET" };

export function recipes(table: Readable): Recipe[] {
  const iceberg = table.formats.includes("iceberg") ? [duckdb, pyiceberg, pandas, polars, spark, trino] : [];
  const delta = table.formats.includes("delta") ? [deltaRs, deltaSpark, deltaDuckdb] : [];
  return [...iceberg, ...delta].map((recipe) => recipe(table));
}

const tokens = (address: string) => `${address}/v1/oauth/tokens`;

function duckdb({ address, cluster, topic }: Readable): Recipe {
  return {
    id: "duckdb",
    label: "DuckDB",
    blocks: [
      {
        label: "SQL",
        text: [
          "INSTALL iceberg; LOAD iceberg;",
          "CREATE SECRET headgate (",
          `    TYPE iceberg, CLIENT_ID ${sqlText(CLIENT.id)}, CLIENT_SECRET ${sqlText(CLIENT.secret)}, OAUTH2_SCOPE 'catalog',`,
          `    ENDPOINT ${sqlText(address)}`,
          ");",
          `ATTACH 'warehouse' AS lake (TYPE iceberg, SECRET headgate, ENDPOINT ${sqlText(address)});`,
          `SELECT count(*) FROM lake.${sqlName(cluster, topic)};`,
        ].join("\n"),
      },
    ],
  };
}

function catalogOf(address: string): string[] {
  return [
    "from pyiceberg.catalog.rest import RestCatalog",
    "",
    "catalog = RestCatalog(",
    '    "headgate",',
    `    uri=${pythonText(address)},`,
    `    credential=${pythonText(`${CLIENT.id}:${CLIENT.secret}`)},`,
    `    **{"oauth2-server-uri": ${pythonText(tokens(address))}},`,
    ")",
  ];
}

const loaded = ({ cluster, topic }: Readable) => `catalog.load_table((${pythonText(cluster)}, ${pythonText(topic)}))`;

function pyiceberg(table: Readable): Recipe {
  return {
    id: "pyiceberg",
    label: "PyIceberg",
    blocks: [
      {
        label: "Python",
        text: [...catalogOf(table.address), `found = ${loaded(table)}.scan().to_arrow()`, "print(found.num_rows)", "catalog.close()"].join("\n"),
      },
    ],
  };
}

function pandas(table: Readable): Recipe {
  return {
    id: "pandas",
    label: "pandas",
    blocks: [
      {
        label: "Python",
        text: [...catalogOf(table.address), `frame = ${loaded(table)}.scan(limit=1000).to_pandas()`, "print(len(frame))", "catalog.close()"].join("\n"),
      },
    ],
  };
}

function polars(table: Readable): Recipe {
  return {
    id: "polars",
    label: "Polars",
    blocks: [
      {
        label: "Python",
        text: ["import polars", ...catalogOf(table.address), `frame = polars.scan_iceberg(${loaded(table)}).collect()`].join("\n"),
      },
    ],
  };
}

function spark({ address, cluster, topic, formatVersion }: Readable): Recipe {
  return {
    id: "spark",
    label: "Spark",
    note:
      formatVersion === 2
        ? "With org.apache.iceberg:iceberg-spark-runtime among its packages."
        : "With org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 among its packages: the table is of Iceberg's format version 3.",
    blocks: [
      {
        label: "Properties",
        text: [
          "spark.sql.extensions                         org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
          "spark.sql.catalog.headgate                   org.apache.iceberg.spark.SparkCatalog",
          "spark.sql.catalog.headgate.type              rest",
          `spark.sql.catalog.headgate.uri               ${address}`,
          `spark.sql.catalog.headgate.credential        ${CLIENT.id}:${CLIENT.secret}`,
          "spark.sql.catalog.headgate.scope             catalog",
          `spark.sql.catalog.headgate.oauth2-server-uri ${tokens(address)}`,
        ].join("\n"),
      },
      { label: "SQL", text: `SELECT count(*) FROM headgate.${sparkName(cluster, topic)}` },
    ],
  };
}

function trino({ address, cluster, topic }: Readable): Recipe {
  const capitals = /[A-Z]/.test(cluster + topic);
  return {
    id: "trino",
    label: "Trino",
    note: "A file etc/catalog/headgate.properties.",
    blocks: [
      {
        label: "Properties",
        text: [
          "connector.name=iceberg",
          "iceberg.catalog.type=rest",
          `iceberg.rest-catalog.uri=${address}`,
          "iceberg.rest-catalog.security=OAUTH2",
          `iceberg.rest-catalog.oauth2.credential=${CLIENT.id}:${CLIENT.secret}`,
          "iceberg.rest-catalog.oauth2.scope=catalog",
          `iceberg.rest-catalog.oauth2.server-uri=${tokens(address)}`,
          ...(capitals ? ["iceberg.rest-catalog.case-insensitive-name-matching=true"] : []),
          "fs.native-s3.enabled=true",
        ].join("\n"),
      },
      { label: "SQL", text: `SELECT count(*) FROM headgate.${sqlName(cluster, topic)};` },
    ],
  };
}

/** Delta's readers open a folder, or a bucket. */
function placeOf(table: Readable): string {
  return (table.location ?? "LOCATION").replace(/^file:(?:\/\/)?(?=\/)/, "");
}

function deltaRs(table: Readable): Recipe {
  return {
    id: "delta-rs",
    label: "Delta: delta-rs",
    blocks: [
      {
        label: "Python",
        text: [
          "from deltalake import DeltaTable, QueryBuilder",
          "",
          `table = DeltaTable(${pythonText(placeOf(table))})`,
          'found = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()',
          "print(found.num_rows)",
        ].join("\n"),
      },
    ],
  };
}

function deltaSpark(table: Readable): Recipe {
  return {
    id: "delta-spark",
    label: "Delta: Spark",
    note: "With io.delta:delta-spark among its packages, and Delta's session extension.",
    blocks: [{ label: "SQL", text: `SELECT count(*) FROM delta.${sparkName(placeOf(table))}` }],
  };
}

function deltaDuckdb(table: Readable): Recipe {
  return {
    id: "delta-duckdb",
    label: "Delta: DuckDB",
    blocks: [{ label: "SQL", text: `INSTALL delta; LOAD delta;\nSELECT count(*) FROM delta_scan(${sqlText(placeOf(table))});` }],
  };
}

/** A table as it was at a snapshot, in Spark's SQL. */
export function timeTravelSql(cluster: string, topic: string, snapshot: string, limit?: number): string {
  // Only digits: nothing else gets into the text.
  const version = /^\d+$/.test(snapshot) ? snapshot : sparkText(snapshot);
  return `SELECT * FROM ${sparkName(cluster, topic)} VERSION AS OF ${version}${limit === undefined ? "" : ` LIMIT ${limit}`}`;
}
