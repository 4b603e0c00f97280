"""Iceberg's REST compatibility kit against our server, which asks for a credential: `make test-rck`.

Every test of the kit must pass but those in KNOWN, which fail against Iceberg's own server too, or which test
what the specification leaves open. A test in KNOWN that passes is a failure of this script: the list is true.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from headgate.jvm import jars_in, java_binary
from tests.support.services import Services

SUITE = "org.apache.iceberg.rest.RESTCompatibilityKitSuite"
# By class and test, the reason why it fails.
KNOWN: Mapping[str, str] = {}
# What the kit may be told of a server.
ABILITIES = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.supports-names-with-dot": "true",
    "rck.supports-variant": "true",
    # Locations are answered in one spelling: `file:/x` as `file:///x`.
    "rck.overrides-requested-location": "true",
}


@contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    """Our server, asking for a credential; the properties by which a client with one reaches it."""
    services = Services(
        folder / "data",
        "127.0.0.1:1",  # no broker answers there: the catalog needs none
        HEADGATE_AUTH__REQUIRED="true",
        # Where kits want tables that they give a location.
        HEADGATE_CATALOG__LOCATIONS="file:///tmp",
    )
    with services.server():
        made, secret = Credentials(services.store.engine).create("kit", [Grant.parse("writer")])
        yield {
            "uri": services.runtime.iceberg,
            "credential": f"{made.client_id}:{secret}",
            "oauth2-server-uri": f"{services.runtime.iceberg}/v1/oauth/tokens",
            "scope": "catalog",
        }
    services.close()


def main(jars: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="headgate-rck-") as folder:
        reports = Path(folder) / "reports"
        with serving(Path(folder)) as client:
            run(jars, {**ABILITIES, **client, "rest.auth.type": "oauth2"}, reports)
        return judge(reports)


def run(jars: Path, settings: Mapping[str, str], reports: Path) -> None:
    """JUnit's console; its exit code only says that something failed, the reports say what."""
    command = [
        java_binary(),
        *(f"-D{key}={value}" for key, value in settings.items()),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        ":".join(map(str, jars_in(jars))),
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        f"--select-class={SUITE}",
        "--details=none",
        "--disable-banner",
        f"--reports-dir={reports}",
    ]
    with (reports.parent / "console.log").open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, timeout=1800)


def judge(reports: Path) -> int:
    outcomes: dict[str, str] = {}
    for file in reports.glob("*.xml"):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '').rstrip('()')}"
            failed = case.find("failure") if case.find("failure") is not None else case.find("error")
            if case.find("skipped") is not None:
                outcomes[name] = "skipped"
            else:
                outcomes[name] = "passed" if failed is None else (failed.get("message") or "failed")
    failed_tests = {name: said for name, said in outcomes.items() if said not in ("passed", "skipped")}
    counts = [sum(said == kind for said in outcomes.values()) for kind in ("passed", "skipped")]
    print(f"{counts[0]} passed, {counts[1]} skipped, {len(failed_tests)} failed")
    for name in sorted(name for name, said in outcomes.items() if said == "skipped"):
        print(f"skipped by the kit: {name}")
    for name, said in sorted(failed_tests.items()):
        known = KNOWN.get(name)
        print(f"{'known ' if known else 'FAILED'} {name}: {known or said.splitlines()[0][:300]}")
    mended = sorted(name for name in KNOWN if outcomes.get(name) == "passed")
    for name in mended:
        print(f"PASSED {name}: take it out of KNOWN")
    if not outcomes:
        print((reports.parent / "console.log").read_text()[-4000:])
    return int(not outcomes or bool(set(failed_tests) - set(KNOWN)) or bool(mended))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
