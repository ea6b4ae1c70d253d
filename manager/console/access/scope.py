"""In which namespaces a user may list objects of one kind. Pure."""

from typing import NamedTuple


class Scope(NamedTuple):
    """Namespaces that a user may look into."""

    everywhere: bool = False
    namespaces: frozenset[str] = frozenset()
    """Those that were asked about and are allowed; without meaning where everything is."""
    partial: bool = False
    """Whether there are more namespaces than were asked about."""

    def allows(self, namespace: str) -> bool:
        """Whether objects of a namespace may be shown."""
        return self.everywhere or namespace in self.namespaces

    @property
    def nothing(self) -> bool:
        """Whether no object may be shown."""
        return not (self.everywhere or self.namespaces)


EVERYTHING = Scope(everywhere=True)
NOTHING = Scope()
