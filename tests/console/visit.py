"""A browser of one person's: a window, who is signed in, and what went wrong in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Response, expect

# What takes the engine some batches, on a machine that has more to do.
PATIENCE_MS = 90_000
SERIOUS = ("serious", "critical")
# Told by the browser itself: the page raises it before any script could hide it.
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@dataclass(frozen=True)
class Client:
    """A credential with its secret."""

    client_id: str
    secret: str


class Visit:
    """`problems` are errors of scripts, what the page's policy forbade, and failures of the server."""

    def __init__(self, browser: Browser, console: str, width: int = 1440, theme: str = "light") -> None:
        self._root = console.rstrip("/")
        scheme: Any = theme
        self._context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        self._context.grant_permissions(["clipboard-read", "clipboard-write"], origin=self._root)
        self._context.add_init_script(_WATCH)
        self.problems: list[str] = []
        # Statuses that a test provokes, and the browser therefore mentions.
        self.expected: set[int] = set()
        self.page = self._context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("response", self._see)

    def go(self, path: str = "/", heading: str | None = None) -> Page:
        """Opens one of the console's pages, and waits for its heading."""
        self.page.goto(self._root + path)
        found = self.page.get_by_role("heading", level=1)
        expect(found).to_be_visible(timeout=20_000)
        if heading is not None:
            expect(found).to_contain_text(heading)
        return self.page

    def sign_in(self, client: Client) -> None:
        page = self.go("/sign-in", "Headgate")
        page.get_by_label("Client id").fill(client.client_id)
        page.get_by_label("Client secret").fill(client.secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("navigation", name="Sections")).to_be_visible()

    def sections(self) -> list[str]:
        links = self.page.get_by_role("navigation", name="Sections").locator("li a span:first-of-type")
        return [text for text in links.all_inner_texts() if text]

    def see(self, what: Locator) -> None:
        expect(what.first).to_be_visible(timeout=PATIENCE_MS)

    def findings(self) -> Sequence[str]:
        """What axe finds that is serious, as one line each."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes']][:3]}"
            for one in found
            if one["impact"] in SERIOUS
        ]

    def check(self) -> None:
        """The page keeps to the policy, is as wide as the window, and took no name for markup."""
        assert self.page.evaluate("window.violations") == [], self.page.url
        assert self.page.evaluate("window.taken") is None, self.page.url
        assert self.page.locator("main script, main img, main iframe").count() == 0, self.page.url
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    def close(self) -> None:
        if not self.page.is_closed() and self.page.url.startswith(self._root):
            violations = self.page.evaluate("window.violations ?? []")
            self.problems += [f"policy: {one}" for one in violations]
        self._context.close()

    def _hear(self, message: ConsoleMessage) -> None:
        said = message.text
        if message.type not in ("error", "warning"):
            return
        # Of a failed request the response tells more.
        if not said.startswith("Failed to load resource"):
            self.problems.append(f"{message.type}: {said[:500]}")

    def _see(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.problems.append(
                f"{response.request.method} {response.url} is answered with {response.status}"
            )


def table_path(topic: str, tab: str | None = None) -> str:
    return f"/tables/{quote(topic, safe='')}" + ("" if tab is None else f"?tab={tab}")
