"""What a plug-in shows people: pages, explanations and gauges. All of it is optional."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from extender.framework import verdicts, views


@runtime_checkable
class Inspectable(Protocol):
    """Shows people what it counts; optional."""

    name: str

    def inspect(self, facts: views.NodeInfo) -> Mapping[str, Any]:
        """Return the figures of one node as JSON, for the plug-in's debug page."""


@runtime_checkable
class NodePage(Protocol):
    """Has a page in the paths that tools for Koordinator's scheduler ask for; optional."""

    name: str
    page: str
    """Its name in the path."""

    def shown(self, info: views.NodeInfo) -> Mapping[str, Any]:
        """Return what the plug-in counts on one node, in the shape of that page."""


Pods = Iterable[tuple[views.PodRecord, bool]]
"""Pods, and whether each has a node or is assumed on one."""


@runtime_checkable
class Measured(Protocol):
    """Exports a gauge about the cluster as a whole; optional."""

    name: str
    gauge: tuple[str, str, str, tuple[str, ...]]
    """Its name, its description, its label and all values of that."""

    def measured(self, view: views.View) -> Mapping[str, float]:
        """Return the present figures by the value of the label."""


@runtime_checkable
class ClusterPage(Protocol):
    """Has pages of the whole cluster in the paths of Koordinator's tools; optional.

    `/apis/v1/plugins/PAGE/COLLECTION` lists, and with `/NAME` at its end it shows one; one of a
    namespace is at `/apis/v1/plugins/PAGE/ITEM/NAMESPACE/NAME`.
    """

    name: str
    page: str
    collection: str
    item: str
    """What one of the collection is called."""
    namespaced: bool
    """Whether the name of one is namespace/name."""

    def listed(self, view: views.View, query: Mapping[str, str], pods: Pods) -> Any:
        """Return the list as the query wants it."""

    def named(self, name: str, view: views.View, query: Mapping[str, str], pods: Pods) -> Any:
        """Return one, None where there is none of this name."""


@runtime_checkable
class PodDiagnoser(Protocol):
    """Explains what it asks of a pod whichever node it takes; optional."""

    name: str

    def diagnose_pod(self, prepared: Any, view: views.View) -> verdicts.Diagnosis:
        """Return the figures, and what would help where they refuse the pod."""
