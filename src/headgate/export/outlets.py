"""Short messages through Apprise: chats, pagers and phones, each an URL that is a secret."""

import logging

from headgate.errors import OutsideRefused, OutsideUnavailable

# Apprise writes addresses into its log, and they hold tokens.
logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)


def send(name: str, url: str, title: str, body: str) -> None:
    """A message to the services of one URL; `name` is that of the secret which holds it."""
    # Not before it is needed: it loads a module for each service that it knows.
    from apprise import Apprise, NotifyFormat

    service = Apprise()
    if not service.add(url):
        raise OutsideRefused(
            f"The secret '{name}' is no URL of Apprise.",
            "Write it as Apprise does, for instance ntfy://topic.",
        )
    if not service.notify(body, title=title, body_format=NotifyFormat.TEXT):
        raise OutsideUnavailable(f"The service of '{name}' has not taken the message.", "It is sent again.")
