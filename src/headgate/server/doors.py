"""Who may use the server, and through which door.

The door on loopback is for this machine: without `auth.required` it takes the user whose server it is as an
admin, and nobody else. The public door, if one is configured, lets nobody in without a credential. Who it is
is asked here, so that no route can be forgotten, except for the catalog's, whose answers have other bodies.
What they may is each route's to say: see `access.py`.
"""

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.access import Gate, LocalKeys
from headgate.access.credentials import Credentials
from headgate.access.gate import ADMISSION, CONSOLE_HEADER, PUBLIC_DOOR, Visit
from headgate.access.limits import FailureLimit
from headgate.access.oidc import Issuer
from headgate.access.sessions import SIGN_IN, SIGN_OUT, Sessions
from headgate.access.tokens import Tokens
from headgate.access.topics import RIGHTS
from headgate.catalog.oauth import PATH
from headgate.catalog.requests import error_response
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import ENGINE_KEY, OPERATOR_KEY, secret
from headgate.errors import HeadgateError, LimitReached, NotAllowed, NotAuthorized, TooManyFailures
from headgate.export.links import PATH as FILES
from headgate.server.access import Access, check_known
from headgate.server.cookies import forget_session
from headgate.server.failures import Failure, status_of
from headgate.server.pages import is_open
from headgate.store import Store

# Whether all is well is nobody's secret, and those who watch over processes have no credentials. A link that
# signs in is its own credential, and so is one to the file of an export. The console's page has no data.
OPEN = frozenset({"/healthz", SIGN_IN})
CATALOG = "/iceberg/"
TOKENS = f"/iceberg{PATH}"
LONGEST_OF_STRANGERS = 65_536
SESSION = "/api/v1/session"


def gate_of(runtime: Runtime, store: Store) -> Gate:
    """As the settings say; the control state has the credentials and the keys."""
    auth, limits = runtime.settings.auth, runtime.settings.limits
    operator = secret(runtime.data, OPERATOR_KEY)
    return Gate(
        Credentials(store.engine),
        Tokens(store.engine, auth.token_lifetime, auth.key_lifetime),
        LocalKeys(secret(runtime.data, ENGINE_KEY), operator),
        required=auth.required,
        issuer=None if auth.oidc.issuer is None else Issuer(auth.oidc),
        sessions=Sessions(operator, auth.session_lifetime),
        limit=FailureLimit(
            per_client=limits.failures, per_address=limits.address_failures, tokens=limits.tokens
        ),
    )


class Doorkeeper:
    """Asks each request who it is from, and whether they may."""

    def __init__(self, app: ASGIApp, gate: Gate, cluster: str, public_url: str | None = None) -> None:
        self._app = app
        self._gate = gate
        self._cluster = cluster
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_for_anybody(scope) and _is_large(scope):
            what = "a credential" if is_sign_in(scope) else "what is open to everybody"
            await _refuse(LimitReached(f"The body is too long for {what}."), scope, receive, send)
            return
        if scope["type"] == "http" and _is_for_catalog(scope["path"]) and _is_large(scope):
            try:
                await run_in_threadpool(self._gate.caller, Visit.of(scope))
            except HeadgateError as error:
                await error_response(error)(scope, receive, send)
                return
        if scope["type"] in ("http", "websocket") and not _asks_itself(scope):
            try:
                admission = await run_in_threadpool(self._gate.admit, Visit.of(scope))
                caller = admission.caller
                check_known(caller)
                if caller.reads_only:
                    raise NotAllowed(f"{caller.name}'s query reads the catalog alone.")
            except HeadgateError as error:
                await _refuse(error, scope, receive, self._forgetting(scope, send))
                return
            scope[RIGHTS] = Access(caller, self._cluster)
            scope[ADMISSION] = admission
        await self._app(scope, receive, send)

    def _forgetting(self, scope: Scope, send: Send) -> Send:
        """Who asks whether they are signed in, by the cookie of a session that has ended, loses it with the
        answer. Other requests keep it: they stay refused until somebody has been shown that it has ended."""
        if scope["path"] not in (SESSION, SIGN_OUT) or not self._gate.is_of_ended_session(Visit.of(scope)):
            return send
        forgotten = Response()
        forget_session(scope, forgotten, self._public_url)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [(name, value) for name, value in forgotten.raw_headers if name != b"content-length"]
                message = {**message, "headers": [*message["headers"], *kept]}
            await send(message)

        return sending


def _is_for_catalog(path: str) -> bool:
    """And for no token, where the body says who it is."""
    return path.startswith(CATALOG) and path != TOKENS


def is_sign_in(scope: Scope) -> bool:
    """Whether the body is who it is: a client id and its secret."""
    return (scope["method"], scope["path"]) == ("POST", SESSION)


def _is_large(scope: Scope) -> bool:
    """Whether its body is, or may be, more than is read for whoever asks. Others are read before the catalog
    asks who it is."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    return b"transfer-encoding" in headers or not length.isdigit() or int(length) > LONGEST_OF_STRANGERS


def _asks_itself(scope: Scope) -> bool:
    path = scope["path"]
    if path in OPEN or path.startswith((CATALOG, FILES)):
        return True
    return scope["type"] == "http" and (is_open(scope["method"], path) or is_sign_in(scope))


def _is_for_anybody(scope: Scope) -> bool:
    """Whether nobody is asked who they are before the body is read, which is then to be short. The catalog
    looks after its own."""
    return scope["type"] == "http" and _asks_itself(scope) and not scope["path"].startswith(CATALOG)


async def _refuse(error: HeadgateError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = {}
    if isinstance(error, NotAuthorized) and not _is_of_console(scope):
        # Basic, so that a browser asks; Bearer is taken as well. The console has a page of its own for it.
        headers["WWW-Authenticate"] = 'Basic realm="headgate"'
    if isinstance(error, TooManyFailures):
        headers["Retry-After"] = str(error.wait)
    said = Failure(error=type(error).__name__, message=error.message, remedy=error.remedy)
    await JSONResponse(said.model_dump(), status_of(error), headers)(scope, receive, send)


def _is_of_console(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return CONSOLE_HEADER in headers or "text/event-stream" in headers.get("accept", "")


class PublicDoor:
    """The same application, for requests that come from elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, PUBLIC_DOOR: True}, receive, send)
