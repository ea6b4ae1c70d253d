"""What the pods of our processes say while an uninstallation stops them. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cli.doctor.checkup import facts, findings
from domain import wording

AGENT: Final = "agent"
"""Component of the pods that put their nodes back."""
MIRROR: Final = "kubernetes.io/config.mirror"


def has_ended(pod: facts.Raw) -> bool:
    """Whether nothing runs in a pod any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_ending(thing: facts.Raw) -> bool:
    """Whether an object was deleted and is there until it has ended."""
    return bool((thing.get("metadata") or {}).get("deletionTimestamp"))


def is_static(pod: facts.Raw) -> bool:
    """Whether the kubelet runs a pod by a file on its node."""
    return MIRROR in facts.meta(pod, "annotations")


def nodes_at_risk(running: Sequence[facts.Raw]) -> frozenset[str]:
    """Return the nodes whose agent may be unable to put them back as it ends."""
    agents = [pod for pod in running if facts.component(pod) == AGENT and not _is_well(pod)]
    return frozenset(str((pod.get("spec") or {}).get("nodeName") or "") for pod in agents) - {""}


def about(nodes: Iterable[str]) -> Iterator[str]:
    """Say what is to be done about nodes at risk, if there are any."""
    listed = sorted(nodes)
    if listed:
        agents = wording.form(len(listed), "the agent", "agents")
        yield (
            f"{agents} of {wording.count(len(listed), 'node is', 'nodes are')} not ready and may "
            f"leave limits behind: {findings.some(listed)}; `koord agent undo` on a node puts it "
            "back"
        )


def _is_well(pod: facts.Raw) -> bool:
    """Whether a pod is ready, or has ended without an error."""
    status = pod.get("status") or {}
    return status.get("phase") == "Succeeded" or any(
        one.get("type") == "Ready" and one.get("status") == "True"
        for one in facts.stated(status, "conditions")
    )
