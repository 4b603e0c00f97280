"""The console in a real browser, on the Headgate that all tests of this folder share."""

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from tests.console.visit import Client, Visit
from tests.support import glue as moto
from tests.support import unity as double
from tests.support.stack import Stack

CHROMIUM = "/usr/bin/chromium"
ROLES = ("reader", "writer", "admin")
Open = Callable[..., Visit]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Chromium's program: Debian's, or where HEADGATE_CHROMIUM points."""
    named = os.environ.get("HEADGATE_CHROMIUM", CHROMIUM)
    found = shutil.which(named)
    if found is None:
        pytest.skip(f"no Chromium: there is no {named}; install it, or name it in HEADGATE_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Its own sandbox asks for rights that root in a container has not; the pages are ours.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def clients(browser: Browser, stack: Stack) -> dict[str, Client]:
    """A credential of each role on everything."""
    made = {}
    for role in ROLES:
        credential, secret = Credentials(stack.store.engine).create(f"browser-{role}", [Grant.parse(role)])
        made[role] = Client(credential.client_id, secret)
    return made


@pytest.fixture
def visit(browser: Browser, stack: Stack, clients: dict[str, Client]) -> Iterator[Open]:
    """Opens a browser of one's own, signed in as a role. In the end nothing may have gone wrong in any."""
    opened: list[Visit] = []

    def open_as(role: str | None = None, width: int = 1440, theme: str = "light") -> Visit:
        one = Visit(browser, stack.runtime.console, width, theme)
        opened.append(one)
        if role is not None:
            one.sign_in(clients[role])
        return one

    yield open_as
    for one in opened:
        one.close()
    for one in opened:
        assert one.problems == []


@pytest.fixture(scope="session")
def glue() -> Iterator[moto.Glue]:
    with moto.glue_server() as glue:
        yield glue


@pytest.fixture(scope="session")
def unity() -> Iterator[double.Unity]:
    with double.unity_server() as unity:
        yield unity
        assert unity.wrong == []
