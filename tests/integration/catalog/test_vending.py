"""Keys of storage for clients, by STS, and encryption: against moto's S3 and STS, by Iceberg's own client."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError
from moto.sts.models import sts_backends

from headgate.access.roles import Grant
from headgate.catalog.client import DELEGATION, VENDED
from headgate.config import Storage
from headgate.jvm import Jvm
from headgate.storage import Place
from headgate.storage.policy import role_policy
from tests.integration.catalog.javaclient import JavaClient
from tests.integration.catalog.raw import SCHEMA
from tests.integration.catalog.serving import AS_ENGINE, Service
from tests.support.iam import enforced
from tests.support.object_store import ROLE, token_service

ACCOUNT = "123456789012"
KMS_KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ASKING = {"X-Iceberg-Access-Delegation": "vended-credentials"}
KEYS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.session-token-expires-at-ms")


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """S3 and STS at one address, which the environment names, with keys of nobody."""
    with token_service() as address, pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "nobodys",
            "AWS_SECRET_ACCESS_KEY": "canary-0b8f-secret",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL_STS": address,
        }.items():
            environment.setenv(name, value)
        client = boto3.client("s3", endpoint_url=address)
        client.create_bucket(Bucket="vault")
        client.create_bucket(Bucket="plain")
        client.close()
        yield address


@pytest.fixture(scope="module")
def own_jvm(aws: str, jvm: Jvm) -> Iterator[Jvm]:
    """One that was started in that environment."""
    from headgate.config import load_settings

    with Jvm(load_settings(environment={}).jars_folder) as own:
        yield own


@pytest.fixture(scope="module")
def service(own_jvm: Jvm, aws: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(own_jvm, tmp_path_factory.mktemp("vending"), storage=Storage()) as service:
        there = Place(None, "any", "t", region="us-east-1", endpoint=aws, path_style=True)
        vault = replace(there, name="vault", bucket="vault", role_arn=ROLE, external_id="x-1")
        service.integrations.add(vault)
        sealed = replace(there, name="plain", bucket="plain", encryption="kms", kms_key=KMS_KEY)
        service.integrations.add(sealed)
        for namespace in ("mine", "local"):
            service.post("/namespaces", {"namespace": [namespace]})
        yield service


@pytest.fixture(scope="module")
def callers(service: Service) -> Iterator[Mapping[str, httpx.Client]]:
    made: dict[str, httpx.Client] = {"engine": client(service, AS_ENGINE)}
    for role in ("reader", "writer", "admin"):
        credential, _ = service.doors.credentials.create(f"a-{role}", [Grant.parse(role)])
        token = service.doors.tokens.issue(credential.client_id)
        made[role] = client(service, {"Authorization": f"Bearer {token}"})
    yield made
    for one in made.values():
        one.close()


def client(service: Service, headers: Mapping[str, str]) -> httpx.Client:
    return httpx.Client(
        base_url=f"{service.uri}/v1", headers={**headers, **ASKING}, trust_env=False, timeout=60
    )


def create(http: httpx.Client, namespace: str, name: str, where: str, **properties: str) -> dict[str, Any]:
    body = {
        "name": name,
        "schema": SCHEMA,
        "location": f"s3://{where}/{namespace}/{name}",
        "properties": properties,
    }
    answer = http.post(f"/namespaces/{namespace}/tables", json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


def last_policy() -> tuple[Any, Any]:
    """What STS was last asked for: the policy of the session, and its role."""
    role = sts_backends[ACCOUNT]["aws"].assumed_roles[-1]
    return json.loads(role.policy), role


def actions(policy: Any) -> set[str]:
    said = [statement["Action"] for statement in policy["Statement"]]
    return {action for one in said for action in ([one] if isinstance(one, str) else one)}


WRITES = {"reader": False, "writer": True, "admin": True, "engine": True}


@pytest.mark.parametrize("role", WRITES)
def test_keys_follow_the_role(service: Service, callers: Mapping[str, httpx.Client], role: str) -> None:
    create(callers["engine"], "mine", f"own-{role}", "vault/t")
    found = callers[role].get(f"/namespaces/mine/tables/own-{role}")
    assert found.headers.get("ETag") is None
    said = found.json()
    (given,) = said["storage-credentials"]
    assert given["prefix"] == f"s3://vault/t/mine/own-{role}"
    assert {key: said["config"][key] for key in KEYS} == given["config"]
    assert said["config"]["s3.endpoint"]
    policy, assumed = last_policy()
    assert assumed.access_key_id == said["config"]["s3.access-key-id"]
    assert assumed.external_id == "x-1"
    objects = policy["Statement"][0]["Resource"]
    assert objects == [f"arn:aws:s3:::vault/t/mine/own-{role}/*"]
    assert ("s3:PutObject" in actions(policy)) is WRITES[role]
    assert "canary" not in found.text


@pytest.mark.parametrize("role", WRITES)
def test_managed_tables_are_written_by_the_engine_alone(
    callers: Mapping[str, httpx.Client], role: str
) -> None:
    create(callers["engine"], "local", f"topic-{role}", "vault/t", **{"headgate.managed": "true"})
    assert callers[role].get(f"/namespaces/local/tables/topic-{role}").is_success
    policy, _ = last_policy()
    assert ("s3:PutObject" in actions(policy)) is (role == "engine")


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_lent_keys_open_their_table_alone(
    service: Service, callers: Mapping[str, httpx.Client], aws: str, role: str
) -> None:
    """Where IAM is enforced, with the role under the policy that Headgate prints."""
    (vault,) = (place for place in service.integrations.list() if place.name == "vault")
    with enforced() as iam:
        iam.policies[ROLE] = role_policy(vault)
        for name in (f"lent-{role}", f"lent-{role}-2"):
            create(callers["engine"], "mine", name, "vault/t")
        said = callers[role].get(f"/namespaces/mine/tables/lent-{role}").json()["config"]
        s3 = boto3.client(
            "s3",
            endpoint_url=aws,
            aws_access_key_id=said["s3.access-key-id"],
            aws_secret_access_key=said["s3.secret-access-key"],
            aws_session_token=said["s3.session-token"],
        )
        own, other = f"t/mine/lent-{role}/", f"t/mine/lent-{role}-2/"
        (file,) = s3.list_objects_v2(Bucket="vault", Prefix=own)["Contents"]
        assert s3.get_object(Bucket="vault", Key=file["Key"])["Body"].read()
        with pytest.raises(ClientError, match="NoSuchKey"):
            s3.get_object(Bucket="vault", Key=f"{own}data/none")
        assert iam.refused == []
        changes: list[Callable[[], Any]] = [
            lambda: s3.put_object(Bucket="vault", Key=f"{own}data/x", Body=b"x"),
            lambda: s3.delete_object(Bucket="vault", Key=f"{own}data/x"),
        ]
        elsewhere: list[Callable[[], Any]] = [
            lambda: s3.list_objects_v2(Bucket="vault", Prefix=other),
            lambda: s3.list_objects_v2(Bucket="vault"),
            lambda: s3.get_object(Bucket="vault", Key=f"{other}data/none"),
            lambda: s3.put_object(Bucket="vault", Key=f"{other}data/x", Body=b"x"),
            lambda: s3.put_object(Bucket="plain", Key="x", Body=b"x"),
        ]
        if role == "writer":
            for change in changes:
                change()
        for refused in [*elsewhere, *(changes if role == "reader" else ())]:
            with pytest.raises(ClientError, match="AccessDenied"):
                refused()
        s3.close()


def test_who_does_not_ask_gets_none(service: Service, callers: Mapping[str, httpx.Client]) -> None:
    create(callers["engine"], "mine", "quiet", "vault/t")
    headers = {"Authorization": callers["reader"].headers["Authorization"]}
    found = httpx.get(f"{service.uri}/v1/namespaces/mine/tables/quiet", headers=headers, trust_env=False)
    assert found.headers["ETag"]
    assert "storage-credentials" not in found.json()
    assert set(found.json()["config"]).isdisjoint(KEYS)
    assert "client.factory" not in found.json()["config"], "how the engine gets in is not for others"
    engines = httpx.get(
        f"{service.uri}/v1/namespaces/mine/tables/quiet", headers=AS_ENGINE, trust_env=False
    ).json()
    assert engines["config"]["client.assume-role.arn"] == ROLE


def test_icebergs_client_writes_and_renews(service: Service, own_jvm: Jvm) -> None:
    java = JavaClient(own_jvm, service.uri, {DELEGATION: VENDED})
    table = java.catalog.buildTable(java.identifier("mine.java"), java.schema()).withLocation(
        "s3://vault/t/mine/java"
    )
    made = table.create()
    io = made.io()
    stream = io.newOutputFile("s3://vault/t/mine/java/data/x").create()
    stream.write(bytearray(b"rows"))
    stream.close()
    assert bytes(io.newInputFile("s3://vault/t/mine/java/data/x").newStream().readAllBytes()) == b"rows"
    properties = dict(io.properties())
    assert properties["s3.session-token"]
    # As it does when keys are about to expire: by the endpoint that the table's answer named.
    provider = own_jvm.java.org.apache.iceberg.aws.s3.VendedCredentialsProvider.create(
        {
            **{key: value for key, value in properties.items() if key not in KEYS},
            "credentials.uri": f"{service.uri}/{properties['client.refresh-credentials-endpoint']}",
        }
    )
    assert provider.resolveCredentials().sessionToken()
    provider.close()
    java.close()


def test_what_is_written_is_encrypted_and_removed(service: Service, aws: str) -> None:
    http = service.http
    create(http, "mine", "sealed", "plain/t")
    s3 = boto3.client("s3", endpoint_url=aws)
    (file,) = s3.list_objects_v2(Bucket="plain", Prefix="t/mine/sealed/")["Contents"]
    head = s3.head_object(Bucket="plain", Key=file["Key"])
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", KMS_KEY)
    dropped = http.delete("/namespaces/mine/tables/sealed", params={"purgeRequested": "true"})
    assert dropped.status_code == 204, dropped.text
    assert s3.list_objects_v2(Bucket="plain", Prefix="t/mine/sealed/")["KeyCount"] == 0
    s3.close()


def test_elsewhere_in_a_bucket_is_no_place(callers: Mapping[str, httpx.Client]) -> None:
    body = {"name": "later", "schema": SCHEMA, "location": "s3://plain/later/x"}
    refused = callers["engine"].post("/namespaces/mine/tables", json=body)
    assert refused.status_code == 400, refused.text
    assert "not inside the warehouse" in refused.text


def test_no_keys_for_what_may_become_anothers(callers: Mapping[str, httpx.Client]) -> None:
    """A writer's table in the folder of the engine's namespace; one that is only staged, over another's."""
    writer = callers["writer"]
    body = {"name": "squat", "schema": SCHEMA, "location": "s3://vault/t/local/soon"}
    made = writer.post("/namespaces/mine/tables", json=body)
    assert made.is_success, made.text
    assert "storage-credentials" not in made.json()
    assert set(made.json()["config"]).isdisjoint(KEYS)
    assert writer.get("/namespaces/mine/tables/squat/credentials").json() == {"storage-credentials": []}
    create(callers["engine"], "mine", "taken", "vault/t")
    over = {"name": "staged", "schema": SCHEMA, "location": "s3://vault/t/mine/taken", "stage-create": True}
    refused = writer.post("/namespaces/mine/tables", json=over)
    assert refused.status_code == 409, refused.text
    inside = {**over, "location": "s3://vault/t/mine/taken/inside"}
    assert writer.post("/namespaces/mine/tables", json=inside).status_code == 409
    free = writer.post("/namespaces/mine/tables", json={**over, "location": "s3://vault/t/mine/free"})
    assert free.json()["storage-credentials"][0]["prefix"] == "s3://vault/t/mine/free"
