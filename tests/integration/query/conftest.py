"""Two tables of the lake, and queries of whoever may read the one or both."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from pyspark.sql import Row, SparkSession

from headgate.access import LOCAL, Grant, Principal
from headgate.access.credentials import Credentials
from headgate.access.query_tokens import QueryTokens
from headgate.access.tokens import Tokens
from headgate.catalog.client import key_properties
from headgate.query.sessions import LakeSessions
from headgate.statements.asking import Asked, Caller
from headgate.store import Store
from tests.support.services import Services

NAMESPACE = "doors"


@dataclass
class Lake:
    """`reader` may read the table `seen` alone."""

    services: Services
    sessions: LakeSessions
    credentials: Credentials
    tokens: QueryTokens
    reader: Principal

    def token(self, caller: Principal) -> str:
        return self.tokens.of(caller)

    def catalog(self, caller: Principal) -> dict[str, str]:
        return key_properties(self.services.runtime.iceberg, self.token(caller))

    def ask(self, sql: str, caller: Principal = LOCAL) -> list[Row]:
        asked = Asked("lake", sql, caller=Caller(caller.name, caller.id))
        with self.sessions.query(asked, self.catalog(caller)) as rows:
            return rows.collect()


@pytest.fixture(scope="module")
def lake(services: Services, spark: SparkSession) -> Iterator[Lake]:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")
    for name in ("seen", "hidden"):
        spark.sql(f"CREATE TABLE lake.{NAMESPACE}.{name} (n INT) USING iceberg")
        spark.sql(f"INSERT INTO lake.{NAMESPACE}.{name} VALUES (1), (2)")
    with closing(Store.open(services.runtime.settings.store_url)) as store:
        credentials = Credentials(store.engine)
        made, _ = credentials.create("doors.reader", [Grant.parse(f"reader:{NAMESPACE}:seen")])
        tokens = QueryTokens(Tokens(store.engine, 600, 3600), credentials)
        yield Lake(services, LakeSessions(spark, NAMESPACE), credentials, tokens, made.principal)
        credentials.revoke("doors.reader")
        for name in ("seen", "hidden"):
            spark.sql(f"DROP TABLE lake.{NAMESPACE}.{name} PURGE")
        spark.sql(f"DROP NAMESPACE lake.{NAMESPACE}")
