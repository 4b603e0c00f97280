"""`make screenshots`: the pictures of the console in the documents, of a Headgate with the orders world.

`--all FOLDER` takes a picture of every page as well, in both themes, as wide as a desk and as a phone. Look
at them before a change of the console is called done.
"""

import argparse
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.glue import KEYS, REGION, SECRET, glue_server
from tests.support.services import wait_for
from tests.support.stack import Stack

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
# Where users find them, as far as they are free.
PORTS = {"SERVER": 8080, "BROKER": 9092, "CONNECT": 15002}
RATE = 60
PATIENCE_SECONDS = 600.0
Theme = Literal["light", "dark"]
THEMES: dict[str, Theme] = {"light": "light", "dark": "dark"}
WIDTHS = {"desk": 1280, "phone": 390}
HEIGHT = 800

# By the picture's name: an address of the console and the theme it is taken in.
PICTURES: dict[str, tuple[str, Theme]] = {
    "overview": ("/", "light"),
    "overview-dark": ("/", "dark"),
    "topics": ("/topics", "light"),
    "messages": ("/topics/payments?tab=messages", "light"),
    "enable": ("/tables/+enable?topic=unique_payments", "light"),
    "table": ("/tables/payments", "light"),
    "snapshots": ("/tables/payments?tab=snapshots", "light"),
    "read": ("/tables/payments?tab=read", "light"),
    "statement": ("/statements/unique-payments", "light"),
    "integrations": ("/integrations", "light"),
}
TABLE_TABS = (
    "schema",
    "snapshots",
    "files",
    "maintenance",
    "dead-letters",
    "catalogs",
    "settings",
    "read",
)
# Every page and tab, for `--all`.
PAGES = (
    "/",
    "/topics",
    *(f"/topics/payments?tab={tab}" for tab in ("messages", "schema", "partitions", "configuration")),
    "/topics/payments?tab=messages&from=live",
    "/topics/payments?tab=messages&from=sql",
    "/tables",
    "/tables/products",
    *(f"/tables/products?tab={tab}" for tab in TABLE_TABS),
    "/tables/payments?tab=snapshots",
    "/tables/payments?tab=files",
    "/tables/unique_payments",
    "/tables/+enable",
    "/tables/+enable?topic=unique_payments",
    *(f"/tables/+enable?topic=unique_payments&step={step}" for step in ("rows", "behaviour", "review")),
    "/statements",
    "/statements/unique-payments",
    *(f"/statements/unique-payments?tab={tab}" for tab in ("charts", "progress", "events")),
    "/statements/nothing-of-that-name",
    "/integrations",
    "/integrations?tab=storage",
    "/integrations?tab=credentials",
    "/integrations/catalogs/athena",
    "/integrations/catalogs/athena?tab=details",
    "/integrations/catalogs/+new",
    "/integrations/catalogs/+new?kind=unity",
    "/integrations/storage/+new",
    "/integrations/credentials/+new",
    "/exports",
    "/exports/sales-by-product",
    "/exports/sales-by-product?tab=definition",
    "/activity",
    "/activity?tab=audit",
    "/settings",
    "/nowhere",
    "/sign-in",
)


@contextmanager
def filled() -> Iterator[Stack]:
    """A Headgate of its own in which something happens."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
        glue = opened.enter_context(glue_server())
        ports = {f"HEADGATE_PORTS__{name}": str(port) for name, port in PORTS.items() if is_free(port)}
        settings = {"HEADGATE_SECRETS__GLUE": SECRET, "HEADGATE_PUBLICATION__INTERVAL": "2s", **ports}
        stack = opened.enter_context(Stack(folder / "data", None, **settings))
        say(f"up: {stack.runtime.console}")
        fill(stack, glue.url)
        yield stack


def fill(stack: Stack, glue: str) -> None:
    """The orders world, records that keep coming, an outside catalog, an export, a dead letter."""
    stack.run("apply", str(ROOT / "examples" / "orders.yaml"))
    stack.run("datagen", "start", "orders", "--name", "shop", "--rate", str(RATE))
    say("the orders world is applied, records are coming")
    region = ("--region", REGION, "--endpoint", glue)
    keys = ("--access-key-id", KEYS["access_key_id"], "--secret", KEYS["secret"])
    stack.run("catalog", "add", "glue", "athena", *region, *keys)
    sales = "SELECT sku, pieces, sold_for FROM product_sales"
    when = ("--period", "schedule", "--schedule", "0 6 * * 1")
    stack.run("export", "create", "sales-by-product", "--sql", sales, *when)
    stack.run("credentials", "create", "analyst", "--role", "reader")
    wait_for(
        "the tables to have rows",
        lambda: len([one for one in stack.json("table", "list") if one["rows"]]) >= 5,
        PATIENCE_SECONDS,
    )
    stack.run("table", "alter", "products", "--on-error", "log")
    producer = Producer({"bootstrap.servers": stack.runtime.kafka})
    producer.produce("products", b"\x00\x00\x00\x03\xe7no product", key=b"P-1000")
    producer.flush(30)
    wait_for(
        "the dead letter",
        lambda: stack.json("table", "show", "products")["dead_letters_count"] == 1,
        PATIENCE_SECONDS,
    )


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def say(line: str) -> None:
    print(f"screenshots: {line}", file=sys.stderr, flush=True)


def picture(page: Page, address: str, file: Path, whole: bool = False) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=30_000)
    expect(page.locator(".loading, .spinner")).to_have_count(0, timeout=15_000)
    # Charts grow into their places, and what is live says so first.
    page.wait_for_timeout(500)
    page.screenshot(path=file, full_page=whole, animations="disabled")


def window(browser: Browser, width: int, theme: Theme) -> Page:
    return browser.new_page(
        viewport={"width": width, "height": HEIGHT}, color_scheme=theme, timezone_id="Europe/Berlin"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    looks = [f"{width}-{theme}" for width in WIDTHS for theme in THEMES]
    parser.add_argument(
        "--look", choices=looks, action="append", help="With --all: only so; may be repeated."
    )
    # So that charts have something to draw.
    parser.add_argument("--wait", type=float, default=60.0, help="Seconds before the first picture.")
    options = parser.parse_args()
    chromium = shutil.which(os.environ.get("HEADGATE_CHROMIUM", CHROMIUM))
    if chromium is None:
        say("no Chromium: install it, or name it in HEADGATE_CHROMIUM")
        return 1
    with filled() as stack, sync_playwright() as playwright:
        time.sleep(options.wait)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        root = stack.runtime.console.rstrip("/")
        for_documents(browser, root)
        if options.all is not None:
            for look in options.look or looks:
                every_page(browser, root, options.all, look)
        browser.close()
    return 0


def for_documents(browser: Browser, root: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, (address, theme) in PICTURES.items():
        page = window(browser, WIDTHS["desk"], theme)
        picture(page, root + address, IMAGES / f"{name}.png")
        page.close()
    say(f"{len(PICTURES)} pictures in {IMAGES}")


def every_page(browser: Browser, root: str, folder: Path, look: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    width, _, theme = look.partition("-")
    page = window(browser, WIDTHS[width], THEMES[theme])
    for number, address in enumerate(PAGES):
        name = address.strip("/").translate(str.maketrans("/?&=+", "-----")) or "overview"
        picture(page, root + address, folder / f"{look}-{number:02d}-{name}.png", whole=True)
    page.close()
    say(f"{len(PAGES)} pictures, {look}, in {folder}")


if __name__ == "__main__":
    sys.exit(main())
