"""How long to wait before something that failed is tried again."""

from dataclasses import dataclass

# So often a wait is doubled at most: a float has no room for more than a thousand doublings.
_DOUBLINGS = 32


@dataclass(frozen=True)
class Backoff:
    """Waits of `first` seconds, then twice as long each time, up to `longest`."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, at least one."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _DOUBLINGS))
