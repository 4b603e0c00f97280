"""`python -m tests.support.warm.jvm_part FILE FOLDER`: the catalog's JVM; FILE has its port and its token."""

import sys
from pathlib import Path
from typing import Any, cast

from headgate.config import load_settings
from headgate.embedded.run_file import write_json
from headgate.jvm import Jvm


def main(file: Path) -> int:
    jvm: Any = Jvm(load_settings(environment={}).jars_folder)
    parameters = jvm.gateway.gateway_parameters
    write_json(file, {"port": parameters.port, "token": parameters.auth_token})
    return cast(int, jvm._process.wait())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
