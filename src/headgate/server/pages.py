"""The console as browsers get it: one page for every address of its own, and the files that it is built of.

There is no data in any of them, so they are for whoever asks, at both doors. What a page shows it gets from
the API, with the rights of who is signed in.
"""

import gzip
import secrets
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from headgate.export.links import PATH as FILES

BUILT = Path(__file__).parent / "console"
INDEX = "index.html"
ASSETS = "/assets/"
# Beside the assets, under names that browsers ask for themselves.
ICONS = frozenset({"/favicon.svg", "/favicon.ico"})
# What the console's own addresses begin with. Each is answered with the same page, which reads the rest.
SECTIONS = frozenset(
    {
        "",
        "activity",
        "audit",
        "credentials",
        "events",
        "exports",
        "generators",
        "integrations",
        "queries",
        "settings",
        "sql",
        "statements",
        "tables",
        "topics",
    }
)
# In the built page; what a response puts there is for that response alone.
NONCE = "__CSP_NONCE__"
READING = frozenset({"GET", "HEAD"})
SMALLEST_COMPRESSED = 1024
# Said here, as systems differ: a script of another kind is not run.
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
COMPRESSED = frozenset({".css", ".js", ".json", ".map", ".svg", ".txt"})
NOT_BUILT = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Headgate</title>
<link rel="icon" href="data:,">
<style nonce="{NONCE}">
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ margin: 4rem auto; max-width: 40rem; padding: 0 1rem; }}
</style>
</head>
<body>
<h1>Headgate</h1>
<p>The console has not been built here. <code>make console</code> builds it; then load this page again.</p>
<p>All else works: the command line, and the <a href="/api/v1/openapi.json">API</a>.</p>
</body>
</html>
"""


def is_open(method: str, path: str) -> bool:
    """Whether a request is for the console's page or files, which are for everybody."""
    return method in READING and (is_page(path) or path.startswith(ASSETS) or path in ICONS)


def is_page(path: str) -> bool:
    """Whether an address is one of the console's own."""
    if path.startswith(FILES):
        return False
    return path.startswith("/") and not path.startswith("//") and path.split("/")[1] in SECTIONS


def pages_router(folder: Path = BUILT) -> APIRouter:
    """`folder` has what `make console` has built, or nothing."""
    router = APIRouter(include_in_schema=False)

    def page(request: Request) -> Response:
        return page_of(folder) if is_page(request.url.path) else _nothing()

    for section in sorted(SECTIONS):
        router.add_api_route(f"/{section}", page, methods=["GET", "HEAD"])
        if section:
            router.add_api_route(f"/{section}/{{rest:path}}", page, methods=["GET", "HEAD"])

    @router.api_route(f"{ASSETS}{{name:path}}", methods=["GET", "HEAD"])
    def asset(request: Request, name: str) -> Response:
        # Their names change with what is in them.
        return _file_response(request, folder / "assets", name, "public, max-age=31536000, immutable")

    def icon(request: Request) -> Response:
        return _file_response(request, folder, request.url.path[1:], "public, max-age=3600")

    for path in sorted(ICONS):
        router.add_api_route(path, icon, methods=["GET", "HEAD"])
    return router


def page_of(folder: Path = BUILT, status: int = 200) -> Response:
    """The page, with a nonce of its own for the style sheet that the editor makes."""
    file = folder / INDEX
    html = file.read_text() if file.is_file() else NOT_BUILT
    nonce = secrets.token_urlsafe(18)
    headers = {"Cache-Control": "no-store", **security_headers(nonce)}
    return HTMLResponse(html.replace(NONCE, nonce), status, headers)


def security_headers(nonce: str | None = None) -> dict[str, str]:
    """What browsers are told that a page may do: its own scripts and styles, its own server, and no more."""
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'" if nonce is None else f"'self' 'nonce-{nonce}'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _file_response(request: Request, folder: Path, name: str, cache: str) -> Response:
    file = _file_in(folder, name)
    if file is None:
        return _nothing()
    kind = KINDS.get(file.suffix, "application/octet-stream")
    headers = {"Cache-Control": cache, "Vary": "Accept-Encoding", **security_headers()}
    found = file.stat()
    is_small = found.st_size < SMALLEST_COMPRESSED or file.suffix not in COMPRESSED
    if is_small or not _takes_gzip(request):
        return Response(file.read_bytes(), 200, headers, kind)
    headers["Content-Encoding"] = "gzip"
    return Response(_compressed(file, found.st_mtime_ns), 200, headers, kind)


def _nothing() -> Response:
    return PlainTextResponse("There is no such file.", 404, {"Cache-Control": "no-store"})


def _file_in(folder: Path, name: str) -> Path | None:
    """A file that lies in the folder; none where its name leads out of it."""
    try:
        root, file = folder.resolve(), (folder / name).resolve()
        return file if file.is_relative_to(root) and file.is_file() else None
    except (OSError, ValueError):
        # A name that no file can have, for instance one that is too long.
        return None


@lru_cache(maxsize=128)
def _compressed(file: Path, changed_at: int) -> bytes:
    return gzip.compress(file.read_bytes(), 9, mtime=changed_at // 1_000_000_000)


def _takes_gzip(request: Request) -> bool:
    offered = request.headers.get("accept-encoding", "").replace(" ", "").split(",")
    return any(one in ("gzip", "*") or (one.startswith("gzip;q=") and one != "gzip;q=0") for one in offered)
