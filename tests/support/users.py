"""Programs as another user of this machine; only root can start them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Who has no files: not the user nobody, whom the tests' Postgres runs as.
NOBODY = 65_533

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user's programs are started by root only")
# Loaded by root, as another user may not be let into the interpreter's folder; then nothing of root is left.
_DROPPED = """
import base64, ctypes, glob, http.client, json, os, pathlib, select, socket, ssl, stat, struct, sys, time
import encodings.idna, traceback, typing, urllib.request
os.chdir("/"); os.setgroups([]); os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid})
exec(json.loads(sys.stdin.readline()))
"""


@contextmanager
def as_user(uid: int, code: str) -> Iterator[subprocess.Popen[str]]:
    """Python code that uses what `_DROPPED` has imported, run by a user with no group and no environment.

    It may read further lines of its standard input.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _DROPPED.format(uid=uid)],
        cwd="/",
        env={"PATH": os.environ.get("PATH", "")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(code) + "\n")
        process.stdin.flush()
        try:
            yield process
        finally:
            process.kill()
