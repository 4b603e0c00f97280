"""The properties by which Iceberg's REST client reaches a catalog, ours or yours."""

from collections.abc import Mapping

# Headgate's own clients see tables that are internal: the Iceberg side of what is Delta alone.
VIEW_HEADER, VIEW_ALL = "X-Headgate-View", "all"

# By this a client asks for keys of a table's storage.
DELEGATION, VENDED = "header.X-Iceberg-Access-Delegation", "vended-credentials"


def key_properties(uri: str, key: str | None = None) -> dict[str, str]:
    """What shows a key of the data folder, or a token, to the catalog; nobody refreshes it."""
    shown = {} if key is None else {"token": key}
    return {
        **shown,
        "rest.auth.type": "oauth2",
        # Not asked for anything: without it the client warns.
        "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        "token-refresh-enabled": "false",
    }


def catalog_properties(
    uri: str, warehouse: str | None = None, token: str | None = None, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """For `CatalogUtil.buildIcebergCatalog`, and under `spark.sql.catalog.<name>.` for Spark.

    The file access class is left to the client: it resolves one by the scheme of each location. `extra` wins.
    """
    properties = {"type": "rest", "uri": uri.rstrip("/"), f"header.{VIEW_HEADER}": VIEW_ALL}
    if warehouse is not None:
        properties["warehouse"] = warehouse
    if token is not None:
        properties |= key_properties(properties["uri"], token)
    properties.update(extra or {})
    return properties
