"""What the agent of a node is to enforce."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names, resources
from api.koordinator.settings import slo
from api.wire import base, quantity
from domain import field_ownership
from manager.cluster_settings import strategy
from manager.reconcile import actions, node_objects

UNREADABLE: Final = "AnnotationUnreadable"
_SHORTHAND: Final = "resourceThresholdStrategy"


@dataclasses.dataclass(frozen=True, slots=True)
class Rendered:
    """A spec, and what could not be put into it."""

    spec: Mapping[str, Any]
    problem: str = ""


def render(parts: strategy.Parts, annotations: Mapping[str, str]) -> Rendered:
    """Return the spec for a node with these annotations."""
    spec: dict[str, Any] = {
        "resourceUsedThresholdWithBE": parts.threshold,
        "resourceQOSStrategy": parts.qos,
        "cpuBurstStrategy": parts.burst,
        "systemStrategy": parts.system,
    }
    if parts.overrides:
        spec["podOverrideLimits"] = parts.overrides
    if parts.host_applications:
        spec["hostApplications"] = list(parts.host_applications)
    bandwidth = annotations.get(names.ANNOTATION_NETWORK_BANDWIDTH)
    if bandwidth is None:
        return Rendered(spec)
    try:
        spec["systemStrategy"] = {
            **parts.system,
            "totalNetworkBandwidth": quantity.canonical(bandwidth),
        }
    except quantity.QuantityError as error:
        # Kernel settings for an unknown bandwidth would be worse than none.
        del spec["systemStrategy"]
        problem = f"{names.ANNOTATION_NETWORK_BANDWIDTH}: {error}; systemStrategy is left out"
        return Rendered(spec, problem)
    return Rendered(spec)


def planned(
    name: str,
    there: node_objects.Present | None,
    parts: strategy.Parts,
    annotations: Mapping[str, str],
) -> actions.Plan:
    """Plan the NodeSLO of an existing node."""
    rendered = render(parts, annotations)
    said = stated(there.spec) if there is not None else frozenset[field_ownership.Path]()
    wanted = rendered.spec if there is None else _kept(parts, rendered.spec, there.spec)
    made = node_objects.planned(resources.NODE_SLOS, name, there, wanted, said)
    if not rendered.problem:
        return made
    uid = there.uid if there is not None else ""
    told = actions.Tell(resources.NODE_SLOS, name, uid, UNREADABLE, rendered.problem, warning=True)
    return actions.Plan(f"{made.message}; {rendered.problem}", (*made.steps, told))


def _kept(
    parts: strategy.Parts, rendered: Mapping[str, Any], present: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Let stand what stands under parts that were unreadable since this process leads.

    Who led before it may have read them, and its word is better than a default.
    """
    if not parts.unread:
        return rendered
    wanted = {name: part for name, part in rendered.items() if name not in parts.unread}
    return wanted | {name: present[name] for name in parts.unread if name in present}


def stated(spec: Mapping[str, Any]) -> frozenset[field_ownership.Path]:
    """Return the paths that a person has set in shorthand and that we must not contradict."""
    short = dict(_shorthand(spec))
    if not short:
        return frozenset()
    try:
        folded = slo.read_node_slo({"spec": short}).spec.wire()
    except base.ReadError:
        return frozenset()  # What cannot be parsed says nothing.
    folded.pop(_SHORTHAND, None)
    return frozenset(
        path
        for path, value in field_ownership.leaves(folded)
        if value != {} and slo.BLOCK_IO_SHORTHAND not in path
    )


def _shorthand(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if spec.get(_SHORTHAND):
        yield _SHORTHAND, spec[_SHORTHAND]
    classes = {
        name: {slo.BLOCK_IO_SHORTHAND: settings[slo.BLOCK_IO_SHORTHAND]}
        for name, settings in (spec.get("resourceQOSStrategy") or {}).items()
        if isinstance(settings, Mapping) and slo.BLOCK_IO_SHORTHAND in settings
    }
    if classes:
        yield "resourceQOSStrategy", classes
