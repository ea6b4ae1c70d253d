"""Tells whether anybody holds a Lease, such as the manager that opens the gates of quotas."""

from typing import Any, Final, NamedTuple

from api import resources
from kube.informers import informer_set, reflector, store
from process.runtime import clock as clocks

_MISSED: Final = 2
"""A lease that was not renewed for as many times its duration has no holder."""
_LONGEST_SECONDS: Final = 60.0


class Renewal(NamedTuple):
    """One renewal of a Lease."""

    holder: str
    renewed: str
    seconds: float


class LeaseHolder:
    """Follows one Lease; no wall clock of others is trusted.

    The first sight of a Lease says nothing, since it may be an old one: only its renewals count.
    """

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._until = -1.0

    @property
    def is_there(self) -> bool:
        """Whether the Lease has a holder that renews it."""
        return self._clock.monotonic() < self._until

    def watch(self, watched: informer_set.InformerSet, namespace: str, lease: str) -> None:
        """Follow the Lease of a name."""
        projection = reflector.Projection(
            resources.LEASES,
            dict,
            _renewal,
            fields=f"metadata.name={lease}",
            namespace=namespace,
        )
        watched.add(projection).listen(self.take)

    def take(self, change: store.Change[Renewal]) -> None:
        """Take in a change of the Lease."""
        found = change.new
        if found is None or not found.holder:
            self._until = -1.0
        elif change.old is not None:
            self._until = self._clock.monotonic() + _MISSED * found.seconds


def _renewal(raw: dict[str, Any]) -> Renewal:
    spec = raw.get("spec")
    found = spec if isinstance(spec, dict) else {}
    seconds = found.get("leaseDurationSeconds")
    bounded = min(float(seconds), _LONGEST_SECONDS) if isinstance(seconds, int) else 15.0
    return Renewal(str(found.get("holderIdentity") or ""), str(found.get("renewTime")), bounded)
