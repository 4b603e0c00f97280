"""`headgate sign-in`: a link that signs a browser in, once."""

from pathlib import Path

from headgate.cli.client import DEFAULT_DATA, DataOption, JsonOption, data_folder
from headgate.cli.output import note, print_json, say
from headgate.errors import NotAllowed


def sign_in(data: DataOption = None, json: JsonOption = False) -> None:
    """Print a link that signs a browser of this machine in as an admin. It works once, for 15 minutes."""
    # Here and not above: `headgate --help` need not load the control state's libraries.
    from headgate.access.sessions import LINK_SECONDS
    from headgate.embedded.run_file import read_run, supervisor_of

    folder = data_folder(data) or DEFAULT_DATA.absolute()
    supervisor_of(folder)
    link = link_of(folder, read_run(folder)["addresses"]["console"])
    if json:
        print_json({"link": link, "seconds": LINK_SECONDS})
        return
    say(link)
    note(f"It works once, within {LINK_SECONDS / 60:.0f} minutes, in a browser on this machine.")


def link_of(folder: Path, console: str) -> str:
    """A link to the Headgate on this data folder, whose page is at `console`."""
    from headgate.access.sessions import SIGN_IN, link_token
    from headgate.embedded.secrets import OPERATOR_KEY, known_secret

    key = known_secret(folder, OPERATOR_KEY)
    if key is None:
        raise NotAllowed(
            f"The keys in {folder} cannot be read.", "Run this as the user whose Headgate it is."
        )
    return f"{console.rstrip('/')}{SIGN_IN}?token={link_token(key)}"
