"""Outside catalogs as they are added: what AWS must allow, and for whom."""

from fastapi.testclient import TestClient

ROLE = "arn:aws:iam::123456789012:role/lake"


def test_a_role_gets_an_external_id_of_its_own_that_its_trust_policy_asks_for(client: TestClient) -> None:
    options = {"region": "eu-west-1", "role_arn": ROLE}
    ids = []
    for name in ("athena", "redshift"):
        wanted = {"name": name, "kind": "glue", "options": options}
        added = client.post("/api/v1/catalogs", json=wanted).json()
        ids.append(added["options"]["external_id"])
        asked = {"purpose": "trust", "account": "123456789012"}
        (only,) = client.get(f"/api/v1/catalogs/{name}/policy", params=asked).json()["Statement"]
        assert only["Condition"] == {"StringEquals": {"sts:ExternalId": ids[-1]}}
    assert ids[0].startswith("headgate-")
    assert ids[0] != ids[1]


def test_an_external_id_that_is_said_stays(client: TestClient) -> None:
    options = {"region": "eu-west-1", "role_arn": ROLE, "external_id": "abc-1"}
    added = client.post("/api/v1/catalogs", json={"name": "athena", "kind": "glue", "options": options})
    assert added.json()["options"]["external_id"] == "abc-1"


def test_tables_on_this_machine_have_no_bucket(client: TestClient) -> None:
    wanted = {"name": "athena", "kind": "glue", "options": {"region": "eu-west-1"}}
    assert client.post("/api/v1/catalogs", json=wanted).status_code == 201
    asked = {"purpose": "bucket", "account": "123456789012"}
    answer = client.get("/api/v1/catalogs/athena/policy", params=asked)
    assert answer.status_code == 400
    assert "Tables lie on this machine" in answer.json()["message"]
