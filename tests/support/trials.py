"""What another user of the machine tries, without a credential, to get at a Headgate that is not theirs.

The text of this file is run as that user, with the standard library alone; `FACTS` is what a user of the
machine can find out by themselves: addresses, names and process ids. A trial that returns has got in.
"""

import base64
import http.client
import json
import os
import pathlib
import socket
import struct
from typing import Any, cast

FACTS: dict[str, Any] = {}


class Refused(Exception):
    """As it has to be."""


def data(name: str = "") -> pathlib.Path:
    return pathlib.Path(FACTS["data"]) / name


def ask(method: str, path: str, body: object = None, host: str = "127.0.0.1", **headers: str) -> str:
    """The answer, if it is one that opens something."""
    connection = http.client.HTTPConnection(host, FACTS["server"], timeout=20)
    sent = None if body is None else body if isinstance(body, str) else json.dumps(body)
    kind = {"Content-Type": "application/json"} if isinstance(body, dict) else {}
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, sent, {**kind, **shown, "Host": f"127.0.0.1:{FACTS['server']}"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    if answer.status in (401, 403):
        assert "/etc" not in text, text
        raise Refused(f"{answer.status} {text[:200]}")
    return f"{answer.status} {text[:200]}"


def query(sql: str) -> str:
    return ask("POST", "/api/v1/queries", {"sql": sql, "lake": True})


def raw(port: int, sent: bytes, seconds: float = 3.0) -> bytes:
    """What comes back within a moment; nothing is a refusal."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as link:
        link.sendall(sent)
        try:
            got = link.recv(65_536)
        except TimeoutError:
            got = b""
    if not got:
        raise Refused("nothing came")
    return got


def speak_http(port: int) -> str:
    got = raw(port, f"GET /queries HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    if not got.startswith(b"HTTP/") or got.split()[1] in (b"400", b"401", b"403", b"404"):
        raise Refused(repr(got[:80]))
    return repr(got[:200])


def speak_py4j(port: int) -> str:
    got = raw(port, b"c\nz:java.lang.System\ngetProperty\nsuser.home\ne\n")
    if not got.startswith(b"!y"):
        raise Refused(repr(got[:80]))
    return repr(got[:200])


def speak_spark(port: int) -> str:
    """A request of Spark's own, as a driver or an executor would send it."""
    body = b"hello"
    frame = struct.pack(">QBQI", 8 + 1 + 8 + 4 + len(body), 3, 42, len(body)) + body
    got = raw(port, frame)
    if b"Sasl" in got or b"uthenti" in got or got[8:9] not in (b"\x04", b"\x05"):
        raise Refused(repr(got[:120]))
    return repr(got[:200])


def speak_kafka(port: int) -> str:
    """Which topics there are (metadata, version 1, of all)."""
    request = struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", -1)
    got = raw(port, struct.pack(">i", len(request)) + request)
    if len(got) < 8 or struct.unpack(">i", got[4:8])[0] != 7:
        raise Refused(repr(got[:80]))
    return repr(got[:200])


def blind(shutdown: bool) -> str:
    """A request of whose sender nothing is left when it is read; root looks whether it was done."""
    body = json.dumps({"name": "blind", "role": "admin"})
    head = (
        f"POST /api/v1/credentials HTTP/1.1\r\nHost: 127.0.0.1:{FACTS['server']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    link = socket.create_connection(("127.0.0.1", FACTS["server"]))
    link.sendall((head + body).encode())
    if shutdown:
        link.shutdown(socket.SHUT_WR)
        got = link.recv(4096)
        if not got or b" 401 " in got:
            raise Refused("401, or nothing: see whether it was done")
        return repr(got[:200])
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()
    raise Refused("see whether it was done")


def forged_token() -> str:
    def part(document: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()

    claims = {"iss": "headgate", "sub": "operator", "exp": 4_000_000_000}
    return f"{part({'alg': 'none'})}.{part(claims)}."


def write_into(name: str) -> str:
    data(name).write_text("mine")
    return "written"


FILES = (
    "run.json", "control.db", "catalog.db", "pids.json", "ports.json", "secrets/operator", "secrets/engine",
    "secrets/broker", "secrets/query", "secrets/kafka-client.properties", "logs/server.log",
    "logs/engine.log", "broker/broker.properties", "broker/logs/meta.properties",
)  # fmt: skip
FOLDERS = ("", "secrets", "logs", "warehouse", "scratch", "broker/logs", "statements")
PATHS = (
    "/metrics", "/api/v1/session", "/api/v1/status", "/api/v1/tables", "/api/v1/topics", "/api/v1/statements",
    "/api/v1/events", "/api/v1/credentials", "/api/v1/audit", "/api/v1/catalogs", "/api/v1/storage",
    "/api/v1/openapi.json", "/registry/subjects", "/registry/schemas/ids/1", "/iceberg/v1/config",
    "/iceberg/v1/namespaces", "/iceberg/v1/namespaces/local/tables",
)  # fmt: skip
QUERIES = {
    "a query": "SELECT 1",
    "a file": "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "a file by name": "SELECT * FROM text.`/etc/passwd`",
    "Java by reflect": "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "Java by java_method": "SELECT java_method('java.lang.Runtime', 'getRuntime')",
    "a jar": "ADD JAR '/tmp/mine.jar'",
}


def trials() -> dict[str, Any]:
    sql = {"sql": "CREATE TABLE mine AS SELECT 1"}
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    grant = "grant_type=client_credentials&client_id=operator&client_secret=operator"
    one: dict[str, Any] = {
        **{f"read {name}": lambda name=name: data(name).read_bytes()[:20] for name in FILES},
        **{f"list '{name}'": lambda name=name: list(data(name).iterdir()) for name in FOLDERS},
        "write into the data folder": lambda: write_into("mine"),
        "replace a secret": lambda: write_into("secrets/operator"),
        **{f"GET {path}": lambda path=path: ask("GET", path) for path in PATHS},
        **{f"ask for {what}": lambda text=text: query(text) for what, text in QUERIES.items()},
        "make a credential": lambda: ask("POST", "/api/v1/credentials", {"name": "mine", "role": "admin"}),
        "run a statement": lambda: ask("POST", "/api/v1/sql", sql),
        "enable a table": lambda: ask("POST", "/api/v1/tables", {"topic": "mine"}),
        "start the query driver": lambda: ask("POST", "/api/v1/query/start"),
        "register a schema": lambda: ask("POST", "/registry/subjects/mine/versions", {"schema": '"string"'}),
        "make a namespace": lambda: ask("POST", "/iceberg/v1/namespaces", {"namespace": ["mine"]}),
        "guess a secret": lambda: ask("POST", "/iceberg/v1/oauth/tokens", grant, **form),
        "show no token": lambda: ask("GET", "/api/v1/tables", Authorization="Bearer None"),
        "show a forged token": lambda: ask("GET", "/api/v1/tables", Authorization=f"Bearer {forged_token()}"),
        "show a forged cookie": lambda: ask(
            "GET", "/api/v1/tables", Cookie=f"headgate-session-{FACTS['server']}=x"
        ),
        "forge a link": lambda: ask("GET", "/sign-in?token=x.1.y"),
        "name another address": lambda: ask(
            "GET", "/api/v1/tables", X_Forwarded_For="127.0.0.1", Forwarded="for=127.0.0.1;by=127.0.0.1"
        ),
        "come as a page of its own origin": lambda: ask(
            "GET", "/api/v1/tables", Origin=f"http://127.0.0.1:{FACTS['server']}"
        ),
        "come by an IPv6 address": lambda: ask("GET", "/api/v1/tables", host="::ffff:127.0.0.1"),
        "come in by another spelling": lambda: ask("GET", "/healthz/../api/v1/status"),
        "send and half close": lambda: blind(True),
        "send and be gone": lambda: blind(False),
    }
    for name, pid in FACTS["pids"].items():
        for what in ("environ", "mem", "maps", "auxv"):
            one[f"read {what} of {name}"] = lambda pid=pid, what=what: pathlib.Path(
                f"/proc/{pid}/{what}"
            ).read_bytes()
        one[f"end {name}"] = lambda pid=pid: os.kill(pid, 15)
    for name, port in FACTS["ports"].items():
        for speak in (speak_http, speak_py4j, speak_spark):
            one[f"{speak.__name__} at {name}"] = lambda port=port, speak=speak: speak(port)
        if name not in FACTS["open"]:
            one[f"speak_kafka at {name}"] = lambda port=port: speak_kafka(port)
    return one


def run() -> dict[str, str]:
    """What came of each trial; those that got in begin with IN."""
    told = {}
    for name, trial in trials().items():
        try:
            told[name] = f"IN: {str(trial())[:300]}"
        except (Refused, OSError, http.client.HTTPException) as refused:
            told[name] = f"{type(refused).__name__}: {refused}"[:300]
    return told


def main(line: str) -> None:
    FACTS.update(cast(dict[str, Any], json.loads(line)))
    print(json.dumps(run()))
