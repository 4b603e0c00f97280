"""`python -m tests.integration.support.run FOLDER`: a test run on the warm services there.

It prints as a line of JSON what it found and what it was told, leaves something behind in each part, and ends
when its input does.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from headgate.catalog.client import catalog_properties
from headgate.config import load_settings
from headgate.kafka import Topics
from headgate.model import TableSpec
from tests.support.spark import session_of_tests
from tests.support.warm.lease import take
from tests.support.warm.spark import use_kept_jvm


def count(rows: DataFrame, _: int) -> None:
    rows.count()


def main(folder: Path) -> None:
    notes: list[str] = []
    with take(folder, notes.append) as lease:
        assert lease is not None, notes
        topics = Topics(lease.broker(load_settings(environment={}).jars_folder).bootstrap)
        services = lease.services()
        runtime = services.runtime
        properties = catalog_properties(runtime.iceberg, token=runtime.catalog_key)
        use_kept_jvm(lease)
        with session_of_tests(runtime.settings, properties) as session:
            java: Any = session._jvm
            found = {
                "topics": [topic.name for topic in topics.list()],
                "tables": [record.spec.topic for record in services.store.tables()],
                "namespaces": [row[0] for row in session.sql("SHOW NAMESPACES IN lake").collect()],
                "views": [table.name for table in session.catalog.listTables()],
                "server": str(runtime.data),
                "jvm": java.java.lang.ProcessHandle.current().pid(),
                "application": session.sparkContext.applicationId,
                "notes": notes,
            }
            topics.create("left-behind")
            services.store.enable_table(TableSpec("left-behind"))
            session.sql("CREATE NAMESPACE lake.left_behind")
            session.range(1).createOrReplaceTempView("left_behind")
            # A query that calls Python back, as those of statements do.
            stream = session.readStream.format("rate").load().writeStream
            stream.foreachBatch(count).start()
            print(json.dumps(found), flush=True)
            sys.stdin.read()
        services.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
