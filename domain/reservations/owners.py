"""Owners of a Reservation: which pods may use it."""

from collections.abc import Mapping

import msgspec

from api.koordinator import scheduling
from api.kubernetes import core, meta
from domain.scoring import terms

_POD_VERSION = "v1"


class Pod(msgspec.Struct, frozen=True, gc=False):
    """What owners and affinities look at of a pod."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str] = {}
    references: tuple[core.OwnerReference, ...] = ()


class ObjectReference(msgspec.Struct, frozen=True):
    """One pod; what is empty is not compared, and neither is the kind."""

    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def matches(self, pod: Pod) -> bool:
        """Whether it is this pod."""
        return (
            self.uid in ("", pod.uid)
            and self.name in ("", pod.name)
            and self.namespace in ("", pod.namespace)
            and self.api_version in ("", _POD_VERSION)
        )


class Controller(msgspec.Struct, frozen=True):
    """A controlling owner of pods; what is empty is not compared."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None

    def matches(self, pod: Pod) -> bool:
        """Whether it owns this pod."""
        return self.namespace in ("", pod.namespace) and any(map(self._is, pod.references))

    def _is(self, reference: core.OwnerReference) -> bool:
        return (
            self.uid in ("", reference.uid)
            and self.name in ("", reference.name)
            and self.kind in ("", reference.kind)
            and self.api_version in ("", reference.api_version)
            and self.controller in (None, reference.controller)
        )


class Owner(msgspec.Struct, frozen=True, cache_hash=True):
    """One item of spec.owners: every part that is given has to match."""

    object: ObjectReference | None = None
    controller: Controller | None = None
    selector: terms.Selector | None = None
    within: str = ""
    """The only namespace of its pods; empty: any."""

    def matches(self, pod: Pod) -> bool:
        """Whether a pod is this owner; an item without parts is no pod."""
        if self.within not in ("", pod.namespace):
            return False
        parts = [one for one in (self.object, self.controller) if one is not None]
        if self.selector is None and not parts:
            return False
        if not all(part.matches(pod) for part in parts):
            return False
        return self.selector is None or self.selector.matches(pod.labels)


def read(written: scheduling.Owner) -> Owner:
    """Read one item of spec.owners."""
    this, controller, selector = written.object, written.controller, written.label_selector
    return Owner(
        object=None if this is None else _object(this),
        controller=None if controller is None else _controller(controller),
        selector=None if selector is None else _selector(selector),
    )


def _object(one: meta.ObjectReference) -> ObjectReference:
    return ObjectReference(
        api_version=one.api_version, namespace=one.namespace, name=one.name, uid=one.uid
    )


def _controller(one: scheduling.ControllerReference) -> Controller:
    return Controller(
        api_version=one.api_version,
        kind=one.kind,
        namespace=one.namespace,
        name=one.name,
        uid=one.uid,
        controller=one.controller,
    )


def _selector(one: meta.LabelSelector) -> terms.Selector:
    pairs = terms.equalities(one.match_labels)
    return terms.Selector(
        pairs
        + tuple(
            terms.Requirement(each.key, each.operator, tuple(each.values))
            for each in one.match_expressions
        )
    )
