"""Why a node lends what it lends, calculated here by the manager's own functions.

For when no manager can be asked: from the node, its pods, its report and the cluster settings.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from api import names
from api.kubernetes import core
from domain.devices.requests import accelerators
from kube.informers import store
from manager.cluster_settings import plan as cluster_settings
from manager.model import projections
from manager.overcommit import breakdown, inventory, sweep
from manager.overcommit import controller as node_resource
from manager.overcommit import plan as plans
from process.runtime import clock as clocks

Raw = Mapping[str, Any]


def explained(
    node: Raw,
    pods: Iterable[Raw],
    metric: Raw | None,
    settings: Mapping[str, str] | None,
    clock: clocks.Clock,
) -> dict[str, Any]:
    """Return the document that a manager would answer, as far as these objects say."""
    seen = _without_devices(projections.node(msgspec.convert(node, core.Node)))
    nodes, measured = store.Store[projections.Node](), store.Store[projections.Metric]()
    placed = store.Store[projections.Pod]()
    nodes.put(store.Meta(seen.name, seen.uid, 0), seen)
    if metric is not None:
        measured.put(store.Meta(seen.name, "", 0), projections.metric(metric))
    for raw in pods:
        pod = msgspec.convert(raw, core.Pod)
        placed.put(store.Meta(pod.metadata.key, pod.metadata.uid, 0), projections.pod(pod))
    sources = sweep.Sources(
        nodes,
        measured,
        placed,
        store.Store[inventory.Topology](),
        store.Store[accelerators.Inventory](),
    )
    stores = node_resource.Stores(sources, slices=False)
    read = cluster_settings.read(None, settings).settings
    observer = node_resource.Observer(stores, lambda: read, clock)
    found = plans.breakdown(observer.seen(read, seen))
    return dict(breakdown.document(found))


def _without_devices(node: projections.Node) -> projections.Node:
    """Return a node of which nothing is said about devices, as its Device is not read here."""
    others = {k: v for k, v in node.annotations.items() if k != names.ANNOTATION_DEVICES_OFFERED}
    return msgspec.structs.replace(node, annotations=others)
