"""Objects that describe a node, such as Devices: their changes reach the state with the node."""

from typing import Any

from extender.state import deltas, ledger
from kube.informers import store


def connect(watched: store.Store[Any], books: ledger.Ledger, kind: str) -> None:
    """Apply every change to the cluster state; objects have the names of their nodes."""

    def apply(change: store.Change[Any]) -> None:
        if change.old != change.new:
            books.cluster.apply(
                deltas.ObjectDelta(kind, change.key, change.old, change.new, node=change.key)
            )

    watched.listen(apply)
