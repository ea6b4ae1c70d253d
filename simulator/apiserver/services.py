"""What the handlers share: the store and everything that watches over it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from process.runtime import clock as clocks
from simulator.apiserver.admission import webhooks
from simulator.apiserver.http import requests
from simulator.apiserver.registry import event_versions, kinds
from simulator.apiserver.storage import object_store
from simulator.controllers import disruption_budgets

Object = object_store.Object


@dataclass(slots=True)
class Services:
    """The parts of one API server."""

    store: object_store.Objects
    registry: kinds.Registry
    clock: clocks.Clock
    webhooks: webhooks.Webhooks
    budgets: disruption_budgets.Budgets
    faults: requests.Faults
    tokens: Mapping[str, requests.User]
    authorizer: requests.Authorizer = field(default_factory=requests.AlwaysAllow)
    address: str = ""
    wakers: set[Callable[[], None]] = field(default_factory=set)
    """Wake every watch, so that it looks at the clock and at `closing`."""
    closing: bool = False

    def wake(self) -> None:
        """Wake every watch."""
        for waker in list(self.wakers):
            waker()


def shown(kind: kinds.Kind, value: Object) -> Object:
    """Return a stored object as the kind presents it."""
    return kind.stamp(event_versions.shown(value) if event_versions.is_view(kind) else value)


def stored(kind: kinds.Kind, value: Object) -> Object:
    """Return an object of the kind as it is stored."""
    if not event_versions.is_view(kind):
        return value
    return {**event_versions.stored(value), "apiVersion": "v1"}
