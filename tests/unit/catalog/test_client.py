"""The properties that Iceberg's REST client is given."""

from headgate.catalog.client import catalog_properties


def test_only_what_is_known_is_told() -> None:
    assert catalog_properties("http://127.0.0.1:8080/iceberg/", None, None, {}) == {
        "type": "rest",
        "header.X-Headgate-View": "all",
        "uri": "http://127.0.0.1:8080/iceberg",
    }


def test_further_properties_win() -> None:
    found = catalog_properties("http://c", "lake", "secret", {"token": "other", "header.x": "y"})
    assert found == {
        "type": "rest",
        "header.X-Headgate-View": "all",
        "uri": "http://c",
        "warehouse": "lake",
        "rest.auth.type": "oauth2",
        "token": "other",
        "oauth2-server-uri": "http://c/v1/oauth/tokens",
        "token-refresh-enabled": "false",
        "header.x": "y",
    }
