"""Prints the OpenAPI description of the control API, from which the console's client is generated.

Nothing is started and nobody is asked: the application is put together on an empty data folder.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.server.app import API, create_app
from headgate.store import Store


def description() -> dict[str, Any]:
    """Of `/api/v1`: what the embedded registry and catalog speak is described by their own specifications."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(environment={}, data=Path(folder) / "data")
        runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=9092)
        store = Store.open("sqlite:///:memory:")
        try:
            found = create_app(runtime, store).openapi()
        finally:
            store.close()
    paths = {path: operations for path, operations in found["paths"].items() if path.startswith(f"{API}/")}
    return {**found, "paths": paths}


def main() -> int:
    json.dump(description(), sys.stdout, indent=2, sort_keys=True, ensure_ascii=False)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
