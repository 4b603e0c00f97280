"""`python -m tests.support.warm.spark_part FILE FOLDER`: the JVM of a Spark driver.

FILE has its port and its token. It has no Spark context: each test run makes its own, with its own settings.
"""

import sys
from pathlib import Path
from typing import Any, cast

from headgate.config import load_settings
from headgate.embedded.run_file import write_json
from tests.support.spark import session_of_tests


def main(file: Path, folder: Path) -> int:
    settings = load_settings(environment={}, data=folder)
    # No catalog is asked for anything here, so there need not be one.
    session = session_of_tests(settings, {"uri": "http://127.0.0.1:1"})
    context: Any = session.sparkContext
    gateway = context._gateway
    # The classes of a query are loaded here, before a run waits for them.
    session.range(100).selectExpr("id % 7 AS k", "id").groupBy("k").count().collect()
    session.stop()
    forget_settings(gateway.jvm)
    parameters = gateway.gateway_parameters
    write_json(file, {"port": parameters.port, "token": parameters.auth_token})
    return cast(int, gateway.proc.wait())


def forget_settings(jvm: Any) -> None:
    """Settings of this session are properties of its JVM, from which every later context would take them."""
    properties = jvm.java.lang.System.getProperties()
    for name in list(properties.stringPropertyNames()):
        if name.startswith("spark."):
            properties.remove(name)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
