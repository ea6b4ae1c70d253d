"""What PreFilter reads of a pod for the other extension points."""

import msgspec

from extender.plugins.coscheduling import selected_pods


class Asked(msgspec.Struct, frozen=True, cache_hash=True):
    """What PreFilter reads of a pod that may be placed: a member, or one with a selector."""

    gang: str = ""
    """Empty: it is no member."""
    listed: tuple[str, ...] = ()
    """The gangs that start together with it."""
    node: str = ""
    """Where the plan of its group places it; empty: anywhere, its gang stands already."""
    count: int = 1
    """Members that the plan binds together."""
    near: selected_pods.Key | None = None
    """Of a pod that may go anywhere: which pods it is brought close to in the network."""

    @property
    def group(self) -> str:
        """Return the id of its gang group."""
        return ",".join(self.listed)
