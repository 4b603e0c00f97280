"""Messages about runs that are posted, signed so that who gets them knows from whom they are."""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx

from headgate.errors import OutsideUnavailable

SECONDS = 30.0
SIGNATURE, DELIVERY = "X-Headgate-Signature", "X-Headgate-Delivery"


def signature(key: str, at: int, body: bytes) -> str:
    """`t=…,v1=…`: HMAC-SHA-256 of the time, a dot, and the body."""
    digest = hmac.new(key.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def post(url: str, key: str, delivery: str, content: Mapping[str, Any]) -> None:
    """Taken with any 2xx; a repeat has the same delivery id."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json",
        DELIVERY: delivery,
        SIGNATURE: signature(key, int(time.time()), body),
    }
    try:
        answer = httpx.post(url, content=body, headers=headers, timeout=SECONDS, trust_env=False)
    except httpx.TransportError as error:
        raise OutsideUnavailable(f"The webhook does not answer: {type(error).__name__}.") from error
    if not answer.is_success:
        raise OutsideUnavailable(f"The webhook answered {answer.status_code}.", "It is posted again.")
