"""States of pods and their containers, as rules about failed or stuck pods compare them. Pure."""

from collections.abc import Collection, Iterator

from descheduler.model import podinfo

MAIN = frozenset({"main"})


def kinds(init: bool = False, ephemeral: bool = False) -> frozenset[str]:
    """Return which kinds of containers are looked at beside the main ones."""
    return MAIN | ({"init"} if init else set()) | ({"ephemeral"} if ephemeral else set())


def containers(pod: podinfo.Pod, of: Collection[str]) -> Iterator[podinfo.Container]:
    """Yield the containers of some kinds."""
    return (one for one in pod.containers if one.kind in of)


def reasons(pod: podinfo.Pod, of: Collection[str]) -> frozenset[str]:
    """Return why a pod, and why its containers wait or have ended."""
    found = {one.reason for one in containers(pod, of) if one.state in {"waiting", "terminated"}}
    return frozenset(found | {pod.reason}) - {""}


def states(pod: podinfo.Pod, of: Collection[str]) -> frozenset[str]:
    """Return the phase of a pod and all its reasons."""
    return reasons(pod, of) | ({pod.phase} if pod.phase else frozenset())


def exit_codes(pod: podinfo.Pod, of: Collection[str]) -> frozenset[int]:
    """Return the exit codes of containers that have terminated."""
    return frozenset(
        one.exit_code
        for one in containers(pod, of)
        if one.state == "terminated" and one.exit_code is not None
    )


def age(pod: podinfo.Pod, now: float) -> float:
    """Return the seconds since a pod was created; negative where its creation is not known."""
    return now - pod.created if pod.created >= 0 else -1.0


def oldest_first(pod: podinfo.Pod) -> tuple[float, str]:
    """Return what pods are sorted by so that the oldest comes first."""
    return pod.created, pod.key
