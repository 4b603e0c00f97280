"""Secrets that steps name: each is one of the configuration."""

from difflib import get_close_matches

from headgate.apply.kinds import KINDS
from headgate.apply.model import ChangeInPlace, Create, Plan, Replace, Resource
from headgate.apply.plan import located
from headgate.config import Settings
from headgate.errors import ConfigError, HeadgateError, InvalidRequest


def check_secrets(plan: Plan, settings: Settings) -> None:
    """Raises InvalidRequest, with the place in the file, for one that the configuration does not have."""
    for step in plan.steps:
        if isinstance(step, Create | ChangeInPlace | Replace):
            for name in KINDS[step.ref.kind].secrets(step.ref.name, step.spec):
                try:
                    settings.secret(name)
                except ConfigError as error:
                    raise located(
                        _named(error, name, settings), Resource(step.ref, step.spec, step.at)
                    ) from error


def _named(error: ConfigError, name: str, settings: Settings) -> HeadgateError:
    """With the name that was probably meant."""
    known = sorted({*settings.secrets, *settings.secrets_file})
    close = [] if name in known else get_close_matches(name, known, 1)
    return InvalidRequest(error.message, f"Did you mean '{close[0]}'?" if close else error.remedy)
