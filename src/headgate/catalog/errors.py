"""What the catalog answers when it cannot do what was asked: an HTTP status and a type of the REST spec.

Clients act on the status. On a commit, 4xx means *not applied, remove the files you wrote* and 5xx means
*unknown, keep them*: so nothing here turns an applied commit into a 4xx.
"""

from typing import Any

from py4j.protocol import Py4JJavaError

from headgate.errors import HeadgateError


class CatalogError(HeadgateError):
    """An error with the status and type that a REST client understands."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.kind, "code": self.status, "stack": []}}


def bad_request(message: str) -> CatalogError:
    return CatalogError(400, "BadRequestException", message)


def forbidden(message: str) -> CatalogError:
    return CatalogError(403, "ForbiddenException", message)


def no_such_namespace(name: object) -> CatalogError:
    return CatalogError(404, "NoSuchNamespaceException", f"Namespace does not exist: {name}")


def no_such_table(name: object) -> CatalogError:
    return CatalogError(404, "NoSuchTableException", f"Table does not exist: {name}")


def no_such_view(name: object) -> CatalogError:
    return CatalogError(404, "NoSuchViewException", f"View does not exist: {name}")


def already_exists(message: str) -> CatalogError:
    return CatalogError(409, "AlreadyExistsException", message)


def commit_failed(message: str) -> CatalogError:
    return CatalogError(409, "CommitFailedException", message)


def unprocessable(message: str) -> CatalogError:
    return CatalogError(422, "UnprocessableEntityException", message)


def commit_unknown(message: str) -> CatalogError:
    return CatalogError(500, "CommitStateUnknownException", message)


def unavailable(message: str) -> CatalogError:
    """Nothing was applied, and the same request may succeed in a moment."""
    return CatalogError(503, "ServiceUnavailableException", message)


STATUS_BY_JAVA_CLASS = {
    "IllegalArgumentException": 400,
    "BadRequestException": 400,
    "ValidationException": 400,
    "JsonProcessingException": 400,
    "NotAuthorizedException": 401,
    "ForbiddenException": 403,
    "NoSuchNamespaceException": 404,
    "NoSuchTableException": 404,
    "NoSuchViewException": 404,
    "NotFoundException": 404,
    "UnsupportedOperationException": 406,
    "AlreadyExistsException": 409,
    "CommitFailedException": 409,
    "NamespaceNotEmptyException": 409,
    "UnprocessableEntityException": 422,
    "CommitStateUnknownException": 500,
}


def from_java(error: Py4JJavaError) -> CatalogError:
    """The nearest class in the exception's ancestry that the spec has a status for; else a 500."""
    thrown = error.java_exception
    message = thrown.getMessage() or thrown.toString()
    kind = java_class(error)
    ancestor = thrown.getClass()
    while ancestor is not None:
        status = STATUS_BY_JAVA_CLASS.get(ancestor.getSimpleName())
        if status is not None:
            return CatalogError(status, kind, message)
        ancestor = ancestor.getSuperclass()
    return CatalogError(500, kind, message)


def java_class(error: Py4JJavaError) -> str:
    name: str = error.java_exception.getClass().getSimpleName()
    return name
