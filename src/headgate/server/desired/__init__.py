"""What files want of this Headgate, carried out by the services that the API has."""

from headgate.server.desired.installation import installation_of

__all__ = ["installation_of"]
