"""What the agent of a node is to enforce."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api import names, resources
from api.wire import quantity
from domain.cluster_settings import shorthand
from manager.cluster_settings import strategy
from manager.reconcile import actions, node_objects

UNREADABLE: Final = "AnnotationUnreadable"


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
    said = shorthand.in_node_slo(there.spec if there is not None else {})
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
