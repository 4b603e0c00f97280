"""Role × route × table: each role tries every route on a table of its own, a managed one and a hidden one."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from headgate.access.roles import Grant
from headgate.jvm import Jvm
from tests.integration.catalog.raw import SCHEMA, RawTable, set_properties, view
from tests.integration.catalog.serving import AS_ENGINE, Service

MANAGED = {"headgate.managed": "true"}
NAMESPACES = ("sandbox", "local", "vault")
OK, READ_ONLY, MISSING = "ok", 403, 404
GRANTS = {
    "nobody": "reader:nowhere:nothing",
    "reader": "reader",
    "reader of sandbox": "reader:sandbox",
    "writer of sandbox": "writer:sandbox",
    "writer": "writer",
    "admin": "admin",
    "engine": "engine",
}
Expected = Mapping[str, tuple[str | int, str | int, str | int]]
# For a table in sandbox, a managed one in local, one in vault.
SEE: Expected = {
    "nobody": (MISSING, MISSING, MISSING),
    "reader": (OK, OK, OK),
    "reader of sandbox": (OK, MISSING, MISSING),
    "writer of sandbox": (OK, MISSING, MISSING),
    "writer": (OK, OK, OK),
    "admin": (OK, OK, OK),
    "engine": (OK, OK, OK),
}
WRITE: Expected = {
    "nobody": (MISSING, MISSING, MISSING),
    "reader": (READ_ONLY, READ_ONLY, READ_ONLY),
    "reader of sandbox": (READ_ONLY, MISSING, MISSING),
    "writer of sandbox": (OK, MISSING, MISSING),
    "writer": (OK, READ_ONLY, OK),
    "admin": (OK, READ_ONLY, OK),
    "engine": (OK, OK, OK),
}
# Tables and views beside those: local is the engine's namespace, where admins may.
CREATE: Expected = {**WRITE, "admin": (OK, OK, OK)}
# Views are nobody's but their writers', also in local.
WRITE_VIEW: Expected = {**WRITE, "writer": (OK, OK, OK), "admin": (OK, OK, OK)}
ONLY_ENGINE: Expected = {
    role: tuple(READ_ONLY if cell == OK and role != "engine" else cell for cell in cells)  # type: ignore[misc]
    for role, cells in WRITE.items()
}
# A namespace below: patterns name namespaces whole.
BELOW: Expected = {
    role: (OK, OK, OK) if role in ("writer", "admin", "engine") else (READ_ONLY, READ_ONLY, READ_ONLY)
    for role in GRANTS
}

_numbers = itertools.count()


@dataclass(frozen=True)
class Target:
    """A table, and a view beside it, made for one attempt."""

    namespace: str
    table: RawTable
    view: str
    spare: str  # a name that nobody has
    view_metadata: str
    dropped_metadata: str

    @property
    def path(self) -> str:
        return f"/namespaces/{self.namespace}"

    @property
    def view_path(self) -> str:
        return f"{self.path}/views/{self.view}"


@dataclass(frozen=True)
class Attempt:
    """A route of the spec as one of its callers would use it."""

    endpoint: str
    expected: Expected
    send: Callable[[httpx.Client, Target], httpx.Response]
    name: str = ""


def rename(kind: str) -> Callable[[httpx.Client, Target], httpx.Response]:
    def send(http: httpx.Client, to: Target) -> httpx.Response:
        old = to.view if kind == "views" else to.table.name
        names = {
            "source": {"namespace": [to.namespace], "name": old},
            "destination": {"namespace": [to.namespace], "name": to.spare},
        }
        return http.post(f"/{kind}/rename", json=names)

    return send


def create(**properties: str) -> Callable[[httpx.Client, Target], httpx.Response]:
    def send(http: httpx.Client, to: Target) -> httpx.Response:
        body = {"name": to.spare, "schema": SCHEMA, "properties": properties}
        return http.post(f"{to.path}/tables", json=body)

    return send


def stage_and_commit(http: httpx.Client, to: Target) -> httpx.Response:
    """Two requests: what the first refuses, the second must refuse as well."""
    body = {"name": to.spare, "schema": SCHEMA, "stage-create": True}
    staged = http.post(f"{to.path}/tables", json=body)
    location = f"{to.table.service.warehouse.as_uri()}/{to.namespace}/{to.spare}"
    updates: list[dict[str, Any]] = [
        {"action": "assign-uuid", "uuid": f"00000000-0000-0000-0000-{next(_numbers):012d}"},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
    ]
    commit = {"requirements": [{"type": "assert-create"}], "updates": updates}
    done = http.post(f"{to.path}/tables/{to.spare}", json=commit)
    assert done.is_success == staged.is_success, (staged.text, done.text)
    return done


def transaction(http: httpx.Client, to: Target) -> httpx.Response:
    changes = {"table-changes": [to.table.identified(set_properties(touched="yes"))]}
    return http.post("/transactions/commit", json=changes)


def register_over(http: httpx.Client, to: Target) -> httpx.Response:
    body = {"name": to.table.name, "metadata-location": to.dropped_metadata, "overwrite": True}
    return http.post(f"{to.path}/register", json=body)


REPORT = {
    "report-type": "commit-report",
    "table-name": "t",
    "snapshot-id": 1,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {},
}
ATTEMPTS = [
    Attempt("GET /namespaces/{namespace}", SEE, lambda http, to: http.get(to.path)),
    Attempt("HEAD /namespaces/{namespace}", SEE, lambda http, to: http.head(to.path)),
    Attempt(
        "POST /namespaces",
        BELOW,
        lambda http, to: http.post("/namespaces", json={"namespace": [to.namespace, to.spare]}),
    ),
    Attempt(
        "POST /namespaces/{namespace}/properties",
        CREATE,
        lambda http, to: http.post(f"{to.path}/properties", json={"updates": {to.spare: "x"}}),
    ),
    Attempt("GET /namespaces/{namespace}/tables", SEE, lambda http, to: http.get(f"{to.path}/tables")),
    Attempt("GET /namespaces/{namespace}/tables/{table}", SEE, lambda http, to: http.get(to.table.path)),
    Attempt(
        "GET /namespaces/{namespace}/tables/{table}/credentials",
        SEE,
        lambda http, to: http.get(f"{to.table.path}/credentials"),
    ),
    Attempt("HEAD /namespaces/{namespace}/tables/{table}", SEE, lambda http, to: http.head(to.table.path)),
    Attempt(
        "POST /namespaces/{namespace}/tables/{table}/metrics",
        SEE,
        lambda http, to: http.post(f"{to.table.path}/metrics", json=REPORT),
    ),
    Attempt("POST /namespaces/{namespace}/tables", CREATE, create()),
    Attempt("POST /namespaces/{namespace}/tables", ONLY_ENGINE, create(**MANAGED), "managed"),
    Attempt("POST /namespaces/{namespace}/tables", CREATE, stage_and_commit, "staged"),
    Attempt(
        "POST /namespaces/{namespace}/tables/{table}",
        WRITE,
        lambda http, to: http.post(to.table.path, json=set_properties(touched="yes")),
    ),
    Attempt(
        "POST /namespaces/{namespace}/tables/{table}",
        ONLY_ENGINE,
        lambda http, to: http.post(to.table.path, json=set_properties(**MANAGED)),
        "makes it managed",
    ),
    Attempt("POST /transactions/commit", WRITE, transaction),
    Attempt(
        "DELETE /namespaces/{namespace}/tables/{table}", WRITE, lambda http, to: http.delete(to.table.path)
    ),
    Attempt("POST /tables/rename", WRITE, rename("tables")),
    Attempt(
        "POST /namespaces/{namespace}/register",
        CREATE,
        lambda http, to: http.post(
            f"{to.path}/register", json={"name": to.spare, "metadata-location": to.dropped_metadata}
        ),
    ),
    Attempt("POST /namespaces/{namespace}/register", WRITE, register_over, "over another"),
    Attempt("GET /namespaces/{namespace}/views", SEE, lambda http, to: http.get(f"{to.path}/views")),
    Attempt("GET /namespaces/{namespace}/views/{view}", SEE, lambda http, to: http.get(to.view_path)),
    Attempt("HEAD /namespaces/{namespace}/views/{view}", SEE, lambda http, to: http.head(to.view_path)),
    Attempt(
        "POST /namespaces/{namespace}/views",
        CREATE,
        lambda http, to: http.post(f"{to.path}/views", json=view(to.spare)),
    ),
    Attempt(
        "POST /namespaces/{namespace}/views/{view}",
        WRITE_VIEW,
        lambda http, to: http.post(to.view_path, json=set_properties(touched="yes")),
    ),
    Attempt(
        "DELETE /namespaces/{namespace}/views/{view}", WRITE_VIEW, lambda http, to: http.delete(to.view_path)
    ),
    Attempt("POST /views/rename", CREATE, rename("views")),
    Attempt(
        "POST /namespaces/{namespace}/register-view",
        CREATE,
        lambda http, to: http.post(
            f"{to.path}/register-view", json={"name": to.spare, "metadata-location": to.view_metadata}
        ),
    ),
]
# Tried by tests of their own: what they do is not about one table.
APART = {"GET /namespaces", "DELETE /namespaces/{namespace}"}


@pytest.fixture(scope="module")
def service(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(jvm, tmp_path_factory.mktemp("rights"), required=True) as service:
        for namespace in NAMESPACES:
            service.post("/namespaces", {"namespace": [namespace]})
        yield service


@pytest.fixture(scope="module")
def callers(service: Service) -> Iterator[dict[str, httpx.Client]]:
    """Each role as a client with a token of its own."""
    clients = {}
    for role, grant in GRANTS.items():
        made, _ = service.doors.credentials.create(role.replace(" ", "-"), [Grant.parse(grant)])
        token = service.doors.tokens.issue(made.client_id)
        headers = {"Authorization": f"Bearer {token}"}
        clients[role] = httpx.Client(base_url=f"{service.uri}/v1", timeout=60, headers=headers)
    yield clients
    for client in clients.values():
        client.close()


def prepare(service: Service, namespace: str, endpoint: str = "") -> Target:
    """By the engine: a table; a view and the metadata of a dropped table where the route is about those."""
    number = next(_numbers)
    table = RawTable(service, namespace, f"t{number}")
    table.create(**(MANAGED if namespace == "local" else {}))
    shown = dropped = ""
    if "view" in endpoint:
        shown = service.post(f"/namespaces/{namespace}/views", view(f"v{number}"))["metadata-location"]
    if "register" in endpoint:
        gone = RawTable(service, namespace, f"gone{number}")
        dropped = gone.create()["metadata-location"]
        service.http.delete(gone.path).raise_for_status()
    return Target(namespace, table, f"v{number}", f"n{number}", shown, dropped)


def state(service: Service, target: Target) -> list[Any]:
    """What refused attempts must leave as it is."""
    paths = [target.table.path, target.view_path, f"{target.path}/tables/{target.spare}", target.path]
    paths.append(f"{target.path}/views/{target.spare}")
    answers = [service.http.get(path) for path in paths]
    return [(answer.status_code, answer.json() if answer.is_success else None) for answer in answers]


def test_every_route_is_tried(callers: dict[str, httpx.Client]) -> None:
    endpoints = callers["reader"].get("/config").json()["endpoints"]
    known = {endpoint.replace("/v1/{prefix}", "") for endpoint in endpoints}
    assert {attempt.endpoint for attempt in ATTEMPTS} | APART == known


@pytest.mark.parametrize("role", GRANTS)
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.endpoint} {a.name}".strip())
def test_what_a_role_may(
    service: Service, callers: dict[str, httpx.Client], role: str, attempt: Attempt
) -> None:
    for namespace, expected in zip(NAMESPACES, attempt.expected[role], strict=True):
        target = prepare(service, namespace, attempt.endpoint)
        before = [] if expected == OK else state(service, target)
        answer = attempt.send(callers[role], target)
        said = f"{role}, {namespace}: {answer.status_code} {answer.text[:200]}"
        if expected == OK:
            assert answer.is_success, said
            continue
        assert answer.status_code == expected, said
        assert state(service, target) == before, said
        if answer.text:
            error = answer.json()["error"]
            assert error["code"] == expected
            assert error["type"].startswith("NoSuch" if expected == MISSING else "Forbidden")


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("nobody", []),
        ("reader", [*NAMESPACES]),
        ("reader of sandbox", ["sandbox"]),
        ("writer of sandbox", ["sandbox"]),
        ("admin", [*NAMESPACES]),
    ],
)
def test_namespaces_that_are_listed(callers: dict[str, httpx.Client], role: str, seen: list[str]) -> None:
    listed = callers[role].get("/namespaces").json()["namespaces"]
    assert sorted(levels[0] for levels in listed) == sorted(seen)
    pages, token = [], ""
    while token is not None:
        page = callers[role].get("/namespaces", params={"pageSize": 1, "pageToken": token}).json()
        pages += page["namespaces"]
        token = page.get("next-page-token")
    assert sorted(pages) == sorted(listed)


def test_dropping_a_namespace(service: Service, callers: dict[str, httpx.Client]) -> None:
    service.post("/namespaces", {"namespace": ["empty"]})
    assert callers["nobody"].delete("/namespaces/empty").status_code == 404
    assert callers["writer of sandbox"].delete("/namespaces/empty").status_code == 404
    assert callers["reader"].delete("/namespaces/empty").status_code == 403
    assert callers["writer"].delete("/namespaces/local").status_code == 403
    assert callers["writer"].delete("/namespaces/empty").status_code == 204


def test_lists_have_what_patterns_match(service: Service) -> None:
    for name in ("pay.eu", "pay.us", "people"):
        RawTable(service, "vault", name).create()
        service.post("/namespaces/vault/views", view(f"{name}.view"))
    made, secret = service.doors.credentials.create("patterns", [Grant.parse("reader:vault:pay.*")])
    with httpx.Client(base_url=f"{service.uri}/v1", auth=(made.client_id, secret), timeout=60) as http:
        tables = http.get("/namespaces/vault/tables").json()["identifiers"]
        assert sorted(one["name"] for one in tables) == ["pay.eu", "pay.us"]
        views = http.get("/namespaces/vault/views").json()["identifiers"]
        assert sorted(one["name"] for one in views) == ["pay.eu.view", "pay.us.view"]
        assert http.get("/namespaces/vault/tables/people").status_code == 404
        assert http.get("/namespaces/vault").status_code == 200


def test_internal_tables_are_for_headgates_own(service: Service, callers: dict[str, httpx.Client]) -> None:
    """The header alone opens nothing: it takes the role."""
    table = RawTable(service, "local", "only-delta")
    table.create(**MANAGED, **{"headgate.formats": "delta"})
    everything = {"X-Headgate-View": "all"}
    for role, status in (("reader", 404), ("writer", 404), ("admin", 200), ("engine", 200)):
        assert callers[role].get(table.path, headers=everything).status_code == status
        assert callers[role].get(table.path).status_code == 404
        listed = callers[role].get("/namespaces/local/tables", headers=everything).json()["identifiers"]
        assert ("only-delta" in [one["name"] for one in listed]) is (status == 200)


def test_a_transaction_is_refused_whole(service: Service, callers: dict[str, httpx.Client]) -> None:
    mine, managed = prepare(service, "sandbox"), prepare(service, "local")
    before = [state(service, mine), state(service, managed)]
    changes = [target.table.identified(set_properties(touched="yes")) for target in (mine, managed)]
    answer = callers["writer"].post("/transactions/commit", json={"table-changes": changes})
    assert answer.status_code == 403, answer.text
    assert [state(service, mine), state(service, managed)] == before


def test_a_batch_that_is_not_the_engines_is_refused(
    service: Service, callers: dict[str, httpx.Client]
) -> None:
    """Who writes what the engine would write is not the engine."""
    target = prepare(service, "local").table
    batch = target.batch(0, 5, "batch-1")
    for role in ("writer", "admin"):
        refused = callers[role].post(target.path, json=batch)
        assert refused.status_code == 403, refused.text
        assert "engine alone" in refused.json()["error"]["message"]
    assert callers["engine"].post(target.path, json=batch).status_code == 200
    assert target.head() is not None


def test_the_key_in_the_data_folder_is_the_engines(service: Service) -> None:
    target = prepare(service, "local").table
    with httpx.Client(base_url=f"{service.uri}/v1", headers=AS_ENGINE, timeout=60) as http:
        assert http.post(target.path, json=set_properties(a="b")).status_code == 200
