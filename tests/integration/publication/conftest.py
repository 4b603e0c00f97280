"""Outside catalogs for the tests of publication."""

from collections.abc import Iterator

import pytest

from tests.support.glue import Glue, glue_server
from tests.support.unity import Unity, unity_server


@pytest.fixture(scope="package")
def glue() -> Iterator[Glue]:
    with glue_server() as glue:
        yield glue


@pytest.fixture
def unity() -> Iterator[Unity]:
    with unity_server() as unity:
        yield unity
        assert unity.wrong == []
