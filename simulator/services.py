"""What the handlers share: the store and everything that watches over it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from process import clock as clocks
from simulator import budgets, events, garbage, kinds, objects, requests, webhooks

Object = objects.Object


@dataclass(slots=True)
class Services:
    """The parts of one API server."""

    store: objects.Objects
    registry: kinds.Registry
    clock: clocks.Clock
    webhooks: webhooks.Webhooks
    budgets: budgets.Budgets
    garbage: garbage.Garbage
    faults: requests.Faults
    tokens: Mapping[str, requests.User]
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
    return kind.stamp(events.shown(value) if events.is_view(kind) else value)


def stored(kind: kinds.Kind, value: Object) -> Object:
    """Return an object of the kind as it is stored."""
    if not events.is_view(kind):
        return value
    return {**events.stored(value), "apiVersion": "v1"}
