"""Tokens over HTTP: how they are asked for, what they open, and what refuses them."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import duckdb_extensions
import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError, OAuthError, UnauthorizedError

from headgate.access.limits import PER_CLIENT
from headgate.access.roles import Grant
from headgate.access.tokens import Tokens
from headgate.jvm import Jvm
from headgate.store import Store
from tests.integration.catalog.javaclient import JavaClient
from tests.integration.catalog.raw import RawTable
from tests.integration.catalog.serving import Service

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


@dataclass(frozen=True)
class Client:
    client_id: str
    secret: str

    @property
    def basic(self) -> dict[str, str]:
        shown = base64.b64encode(f"{self.client_id}:{self.secret}".encode()).decode()
        return {"Authorization": f"Basic {shown}"}

    @property
    def form(self) -> dict[str, str]:
        return {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.secret}


@pytest.fixture(scope="module")
def service(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A catalog that asks for tokens, with a managed table of a dotted topic and a table of a user's."""
    with Service(jvm, tmp_path_factory.mktemp("oauth"), required=True) as service:
        for namespace in ("local", "sandbox"):
            service.post("/namespaces", {"namespace": [namespace]})
        RawTable(service, "local", "shop.orders").create(**{"headgate.managed": "true"})
        RawTable(service, "sandbox", "mine").create()
        yield service


@pytest.fixture
def anyone(service: Service) -> Iterator[httpx.Client]:
    """A client that shows nothing by itself."""
    with httpx.Client(base_url=f"{service.uri}/v1", timeout=60) as http:
        yield http


def client(service: Service, name: str, *grants: str) -> Client:
    made, secret = service.doors.credentials.create(name, [Grant.parse(text) for text in grants])
    return Client(made.client_id, secret)


def token_of(anyone: httpx.Client, some: Client) -> str:
    answer = anyone.post("/oauth/tokens", data=some.form)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def assert_refused(answer: httpx.Response, status: int = 401) -> None:
    """As the spec has it: a body that Iceberg's clients take apart."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("NotAuthorizedException", status)
    assert error["message"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_secret_in_the_header_or_in_the_form(service: Service, anyone: httpx.Client) -> None:
    some = client(service, "header-or-form", "reader")
    grant = {"grant_type": "client_credentials", "scope": "catalog"}
    for answer in (
        anyone.post("/oauth/tokens", data=some.form),
        anyone.post("/oauth/tokens", data=grant, headers=some.basic),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        said = answer.json()
        assert said["token_type"] == "bearer"
        assert said["issued_token_type"] == ACCESS_TOKEN
        assert said["expires_in"] == 600
        assert anyone.get("/config", headers=bearer(said["access_token"])).status_code == 200
    assert anyone.get("/config", headers=some.basic).status_code == 200


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"grant_type": "client_credentials"}, 401, "invalid_client"),
        ({"grant_type": "client_credentials", "client_secret": "x"}, 401, "invalid_client"),
        (
            {"grant_type": "client_credentials", "client_id": "hg0", "client_secret": "x"},
            401,
            "invalid_client",
        ),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({}, 400, "unsupported_grant_type"),
        ({"grant_type": EXCHANGE}, 400, "invalid_request"),
        ({"grant_type": EXCHANGE, "subject_token": "x"}, 400, "invalid_request"),
        (
            {"grant_type": EXCHANGE, "subject_token": "x", "subject_token_type": ACCESS_TOKEN},
            400,
            "invalid_grant",
        ),
    ],
)
def test_what_gets_no_token(anyone: httpx.Client, form: dict[str, str], status: int, error: str) -> None:
    answer = anyone.post("/oauth/tokens", data=form)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["error_description"]


def test_a_form_that_is_none(anyone: httpx.Client) -> None:
    for body, status in ((b"\xff\xfe", 400), (b"a=" + b"x" * 70_000, 413), (b"a=1&" * 100, 400)):
        answer = anyone.post("/oauth/tokens", content=body)
        assert (answer.status_code, answer.json()["error"]) == (status, "invalid_request")
    malformed = anyone.post(
        "/oauth/tokens", data={"grant_type": "client_credentials"}, headers={"Authorization": "Basic ::"}
    )
    assert (malformed.status_code, malformed.json()["error"]) == (401, "invalid_client")


def test_wrong_secrets_are_counted(service: Service, anyone: httpx.Client) -> None:
    some = client(service, "counted", "reader")
    wrong = Client(some.client_id, "wrong")
    for _ in range(PER_CLIENT):
        assert anyone.post("/oauth/tokens", data=wrong.form).status_code == 401
    stopped = anyone.post("/oauth/tokens", data=some.form)
    assert stopped.status_code == 429
    assert int(stopped.headers["retry-after"]) >= 1
    other = client(service, "not-counted", "reader")
    assert token_of(anyone, other)


def test_a_token_for_a_token(service: Service, anyone: httpx.Client) -> None:
    some, other = client(service, "refreshing", "reader"), client(service, "another", "reader")
    token = token_of(anyone, some)
    form = {"grant_type": EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN}
    for headers in ({}, bearer(token), some.basic):
        said = anyone.post("/oauth/tokens", data=form, headers=headers)
        assert said.status_code == 200, said.text
        assert anyone.get("/config", headers=bearer(said.json()["access_token"])).status_code == 200
    stolen = anyone.post("/oauth/tokens", data=form, headers=other.basic)
    assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
    acting = anyone.post("/oauth/tokens", data={**form, "actor_token": token})
    assert (acting.status_code, acting.json()["error"]) == (400, "invalid_request")
    service.doors.credentials.revoke("refreshing")
    revoked = anyone.post("/oauth/tokens", data=form)
    assert (revoked.status_code, revoked.json()["error"]) == (400, "invalid_grant")


def test_an_expired_token_is_replaced_only_beside_the_secret(service: Service, anyone: httpx.Client) -> None:
    some = client(service, "expired", "reader")
    store = Store.open(f"sqlite:///{service.folder / 'control.db'}")
    expired = Tokens(store.engine, 600, 3600, clock=lambda: time.time() - 601).issue(some.client_id)
    store.close()
    answer = anyone.get("/config", headers=bearer(expired))
    assert_refused(answer)
    assert "expired" in answer.json()["error"]["message"]
    form = {"grant_type": EXCHANGE, "subject_token": expired, "subject_token_type": ACCESS_TOKEN}
    refused = anyone.post("/oauth/tokens", data=form)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert anyone.post("/oauth/tokens", data=form, headers=some.basic).status_code == 200


def test_nothing_opens_without_a_good_token(service: Service, anyone: httpx.Client) -> None:
    """Every route, known or not, before it looks at anything else."""
    some, gone = client(service, "forging", "admin"), client(service, "revoked", "admin")
    good, revoked = token_of(anyone, some), token_of(anyone, gone)
    service.doors.credentials.revoke("revoked")
    store = Store.open(f"sqlite:///{service.folder / 'control.db'}")
    expired = Tokens(store.engine, 600, 3600, clock=lambda: time.time() - 601).issue(some.client_id)
    store.close()
    header, claims, signature = good.split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    shown = [
        {},
        bearer(revoked),
        bearer(expired),
        bearer("None"),
        bearer("x.y.z"),
        bearer(f"{none}.{claims}."),
        bearer(f"{none}.{claims}.{signature}"),
        bearer(f"{header}.{claims}.{signature[::-1]}"),
        bearer(good[:-4]),
        {"Authorization": "Digest x"},
    ]
    endpoints = anyone.get("/config", headers=bearer(good)).json()["endpoints"]
    assert len(endpoints) > 20
    for endpoint in [*endpoints, "GET /v1/config", "GET /v1/nowhere", "PUT /v1/namespaces"]:
        method, path = endpoint.split(" ")
        path = path.removeprefix("/v1").replace("/{prefix}", "")
        path = path.replace("{namespace}", "sandbox").replace("{table}", "mine").replace("{view}", "v")
        for headers in shown:
            answer = anyone.request(method, path, headers=headers, content=b"{not json")
            if method == "HEAD":
                assert answer.status_code == 401
            else:
                assert_refused(answer)
    service.doors.credentials.revoke("forging")
    assert_refused(anyone.get("/namespaces", headers=bearer(good)))
    assert service.get("/namespaces/sandbox/tables/mine")["metadata"]


def test_where_tokens_are_is_told(service: Service, anyone: httpx.Client) -> None:
    some = client(service, "asking", "reader")
    config = anyone.get("/config?warehouse=warehouse", headers=some.basic).json()
    assert config["defaults"]["oauth2-server-uri"] == f"{service.uri}/v1/oauth/tokens"


def test_pyiceberg_with_a_credential(service: Service) -> None:
    some = client(service, "pyiceberg", "writer")
    catalog = RestCatalog(
        "p",
        uri=service.uri,
        credential=f"{some.client_id}:{some.secret}",
        scope="catalog",
        **{"oauth2-server-uri": f"{service.uri}/v1/oauth/tokens"},
    )
    assert catalog.list_tables("local") == [("local", "shop.orders")]
    mine = catalog.load_table(("sandbox", "mine"))
    with mine.transaction() as change:
        change.set_properties(touched="yes")
    with (
        pytest.raises(ForbiddenError, match="written by the engine alone"),
        catalog.load_table(("local", "shop.orders")).transaction() as change,
    ):
        change.set_properties(touched="yes")
    with pytest.raises(ForbiddenError, match="namespace of your own"):
        catalog.create_table(("local", "other"), mine.schema())
    service.doors.credentials.revoke("pyiceberg")
    with pytest.raises((UnauthorizedError, OAuthError)):
        catalog.list_tables("local")
    catalog.close()


def test_pyiceberg_with_a_wrong_secret(service: Service) -> None:
    some = client(service, "mistyped", "reader")
    with pytest.raises(OAuthError, match="invalid_client"):
        RestCatalog(
            "p",
            uri=service.uri,
            credential=f"{some.client_id}:wrong",
            **{"oauth2-server-uri": f"{service.uri}/v1/oauth/tokens"},
        )


def test_icebergs_own_client_with_a_credential(jvm: Jvm, service: Service) -> None:
    some = client(service, "java", "writer")
    login = {"credential": f"{some.client_id}:{some.secret}", "scope": "catalog"}
    java = JavaClient(jvm, service.uri, login, key=None)
    table = java.create("sandbox.java")
    java.append(table, [(1, "one")]).commit()
    assert java.rows(java.load("sandbox.java")) == [(1, "one")]
    managed = java.load("local.shop.orders")
    with pytest.raises(Py4JJavaError, match="written by the engine alone"):
        managed.updateProperties().set("touched", "yes").commit()
    java.close()


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    for extension in ("avro", "httpfs", "iceberg"):
        duckdb_extensions.import_extension(extension)
        connection.load_extension(extension)
    yield connection
    connection.close()


def test_duckdb_as_it_is_typed(service: Service, duck: duckdb.DuckDBPyConnection) -> None:
    """A client id, a secret and an endpoint: no token URL, any name for the warehouse, a dotted topic."""
    some = client(service, "duckdb", "writer")
    duck.execute(
        f"""CREATE SECRET iceberg_secret (
            TYPE ICEBERG,
            CLIENT_ID     '{some.client_id}',
            CLIENT_SECRET '{some.secret}',
            ENDPOINT      '{service.uri}',
            OAUTH2_SCOPE  'catalog'
        )"""
    )
    duck.execute(
        f"""ATTACH 'warehouse' AS ice_cat (
            TYPE iceberg,
            SECRET iceberg_secret,
            ENDPOINT '{service.uri}'
        )"""
    )
    assert duck.execute('SELECT count(*) FROM ice_cat."local"."shop.orders"').fetchall() == [(0,)]
    duck.execute("CREATE TABLE ice_cat.sandbox.quack (id BIGINT)")
    duck.execute("INSERT INTO ice_cat.sandbox.quack VALUES (7)")
    assert duck.execute("SELECT id FROM ice_cat.sandbox.quack").fetchall() == [(7,)]
    with pytest.raises(duckdb.Error, match="written by the engine alone"):
        duck.execute('INSERT INTO ice_cat."local"."shop.orders" VALUES (1)')


def test_duckdb_with_a_wrong_secret(service: Service, duck: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="invalid_client"):
        duck.execute(
            "CREATE SECRET s (TYPE iceberg, CLIENT_ID 'any', CLIENT_SECRET 'any', OAUTH2_SCOPE 'catalog', "
            f"ENDPOINT '{service.uri}')"
        )


def test_what_is_not_granted_is_not_there(service: Service) -> None:
    some = client(service, "narrow", "reader:sandbox:mine")
    catalog = RestCatalog(
        "p",
        uri=service.uri,
        credential=f"{some.client_id}:{some.secret}",
        **{"oauth2-server-uri": f"{service.uri}/v1/oauth/tokens"},
    )
    assert catalog.list_namespaces() == [("sandbox",)]
    assert catalog.list_tables("sandbox") == [("sandbox", "mine")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table(("local", "shop.orders"))
    catalog.close()
