"""PyIceberg's own tests of catalogs, from its source distribution, against our server: `make test-pyiceberg`.

They are run with the fixture that PyIceberg has for a REST catalog of one's own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.rck import serving

NAME = "headgate"
TESTS = "tests/integration/test_catalog.py"


def main(source: Path, packages: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="headgate-pyiceberg-") as folder, serving(Path(folder)) as client:
        prefix = f"PYICEBERG_CATALOG__{NAME.upper()}__"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(source.absolute()), str(packages.absolute()))),
            "PYICEBERG_TEST_CATALOG": NAME,
            f"{prefix}TYPE": "rest",
            **{prefix + key.upper().replace("-", "_"): value for key, value in client.items()},
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            TESTS,
            "-q",
            "-k",
            "rest_test_catalog",
            "-p",
            "no:cacheprovider",
            "-rs",
        ]
        return subprocess.run(command, cwd=source, env=environment, check=False, timeout=1200).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
