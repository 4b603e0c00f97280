"""What a query read, added up from the metrics of its scans."""

from pyspark.sql.metrics import MetricValue, PlanMetrics

from headgate.query.client import Reading, reading_of


def scan(**values: int) -> PlanMetrics:
    return PlanMetrics("BatchScan", 1, 0, [MetricValue(name, value, "sum") for name, value in values.items()])


def test_files_and_bytes_of_all_scans() -> None:
    plans = [
        scan(resultDataFiles=3, totalDataFileSize=300, resultDeleteFiles=1, totalDeleteFileSize=7),
        scan(numOutputRows=12),
        scan(resultDataFiles=2, totalDataFileSize=50),
    ]
    assert reading_of(plans) == Reading(files=6, bytes=357)


def test_an_answer_from_metadata_reads_nothing() -> None:
    assert reading_of([scan(numOutputRows=1)]) == Reading(0, 0)
