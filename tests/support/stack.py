"""The whole of Headgate as a user starts it: `headgate up`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from headgate.embedded.runtime import Runtime
from headgate.store import Store
from tests.support.services import verify

if TYPE_CHECKING:
    from tests.support.mails import MailServer

HEADGATE = str(Path(sys.executable).parent / "headgate")
PORTS = {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
# For a machine of two cores and rows by the hundred.
SMALL = {
    "HEADGATE_SPARK__MEMORY": "1g",
    "HEADGATE_QUERY__MEMORY": "1g",
    # A driver that no test asks is processor time that others lack.
    "HEADGATE_QUERY__START": "lazy",
    "HEADGATE_STATEMENTS__TASKS": "2",
}


class Stack:
    """Up from construction on; `down` or the end of the block stops it."""

    # Where its mails go, of the stack that all tests share.
    mails: "MailServer"

    def __init__(self, data: Path, config: Path | None = None, **environment: str) -> None:
        """`config` and `environment` configure what differs from an embedded Headgate on free ports."""
        self.data = data
        settings = {**PORTS, **SMALL, **environment}
        self._log = (data.parent / f"{data.name}.log").open("a+")
        self.popen = subprocess.Popen(
            [HEADGATE, "up", "--data", str(data), *(() if config is None else ("--config", str(config)))],
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.said: list[str] = []
        for line in self.popen.stdout or ():
            self.said.append(line.rstrip())
            if line.split()[:1] == ["console"]:
                break
        assert "READY" in self.said, f"headgate up said {self.said}"
        self.runtime = Runtime.load(data, settings)
        self.store = Store.open(self.runtime.settings.store_url)

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """The `headgate` command, which must end with `code`."""
        done = subprocess.run(
            [HEADGATE, *arguments, "--data", str(self.data)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stderr}"
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def json_output(self, *arguments: str) -> Any:
        """For commands that print rows."""
        done = self.run(*arguments, "--output", "json")
        assert done.stdout, f"{arguments} printed nothing: {done.stderr}"
        return json.loads(done.stdout)

    def verify(self, topic: str) -> None:
        verify(self.store, topic)

    def stop(self) -> None:
        self.store.close()
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        self.popen.communicate(timeout=90)
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
