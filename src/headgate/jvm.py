"""A small JVM beside a Python process, for what only Java libraries do. Reached by py4j with a token."""

import os
import shutil
from pathlib import Path
from typing import Any, Self

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from headgate.errors import PrerequisiteMissing


def java_binary() -> str:
    """The JVM that JAVA_HOME or the PATH names."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        raise PrerequisiteMissing("No Java was found.", "Install a JDK 17 or newer, or set JAVA_HOME.")
    return found


def jars_in(folder: Path) -> list[Path]:
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise PrerequisiteMissing(f"There are no jars in {folder}.", "Run `make setup`.")
    return jars


# Hadoop's settings for files of this machine. Its own way starts a process, chmod, for each file that it
# writes; a batch of a statement writes dozens.
LOCAL_FILES = {
    "fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    # It gives each file the mode that it is asked for, whatever the process's own umask says.
    "fs.permissions.umask-mode": "077",
}
# A JVM says on its standard output what it thinks of its archive, where others read addresses.
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


def archive(jars_folder: Path, name: str) -> Path:
    """Where the classes of the JVM `name` are kept ready, if `make archives` has been run."""
    return jars_folder / f"{name}.jsa"


def archive_options(jars_folder: Path, *names: str) -> list[str]:
    """Java's options to start with the first of these archives that is there.

    One that does not fit, as another JDK or other jars made it, is left alone by the JVM, which then starts
    as it would without.
    """
    for name in names:
        found = archive(jars_folder, name)
        if found.exists():
            return [f"-XX:SharedArchiveFile={found}", "-Xshare:auto", *QUIET]
    return []


def spark_home_jars() -> Path:
    return Path(pyspark.__file__).parent / "jars"


class Jvm:
    """One JVM with Spark's jars and ours. It ends when this process does, whatever ends it."""

    def __init__(self, jars_folder: Path, heap: str = "512m") -> None:
        own = spark_home_jars()
        port, token, self._process = launch_gateway(
            classpath=os.pathsep.join([*map(str, jars_in(jars_folder / "spark")), f"{own}/*"]),
            jarpath=str(next(own.glob("py4j*.jar"))),
            javaopts=[
                f"-Xmx{heap}",
                "-XX:+UseSerialGC",
                "-XX:+ExitOnOutOfMemoryError",
                *archive_options(jars_folder, "server"),
            ],
            java_path=java_binary(),
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        self.gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
        )

    @property
    def java(self) -> Any:
        """The root of Java's packages: `jvm.java.org.apache.avro.Schema`."""
        return self.gateway.jvm

    def close(self) -> None:
        self.gateway.shutdown()
        # It ends by itself when its input does.
        self._process.stdin.close()
        self._process.wait(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
