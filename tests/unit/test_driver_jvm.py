import os
import stat
from pathlib import Path

from headgate.driver_jvm import properties_file


def test_settings_pass_through_a_file_of_the_owner_that_is_gone_afterwards(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with properties_file({"spark.a": "b"}, tmp_path) as file:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert file.read_text() == "spark.a=b\n"
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_keys_and_values_are_written_as_java_reads_them(tmp_path: Path) -> None:
    settings = {"a key:with=signs": " leading, C:\\path\nand a line", "#note": "x=y: z"}
    with properties_file(settings, tmp_path) as file:
        assert file.read_text().splitlines() == [
            "a\\ key\\:with\\=signs=\\ leading, C:\\\\path\\nand a line",
            "\\#note=x=y: z",
        ]
