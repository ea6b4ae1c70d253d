"""What a bind chose for a pod: CPUs, NUMA nodes and devices, and why not others."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from api import names
from api.kubernetes import core
from api.wire import untrusted
from cli.explain import stories

TOPOLOGY: Final = "NodeNUMAResource"
DEVICES: Final = "DeviceShare"
PLUGINS: Final = frozenset({TOPOLOGY, DEVICES})
"""Plug-ins whose grants are shown here."""
_OTHERS: Final = "Others"
Told = Mapping[str, str]


def topology(pod: core.Pod) -> stories.Chapter:
    """Tell which CPUs and NUMA nodes a pod was bound to, and why not to others."""
    return _chapter("topology", TOPOLOGY, pod, _topology)


def devices(pod: core.Pod) -> stories.Chapter:
    """Tell which devices a pod was given, and why not others."""
    return _chapter("devices", DEVICES, pod, _devices)


def _chapter(
    name: str, plugin: str, pod: core.Pod, tell: Callable[[Told], Iterator[str]]
) -> stories.Chapter:
    told = _granted(pod).get(plugin)
    if not isinstance(told, Mapping):
        return stories.Chapter(name, ())
    texts = {str(topic): text for topic, text in told.items() if isinstance(text, str) and text}
    return stories.Chapter(name, tuple(tell(texts)), texts)


def _granted(pod: core.Pod) -> Mapping[str, Any]:
    """Return what the record of the bind says of each plug-in; anybody may have written it."""
    written = pod.metadata.annotations.get(names.PLACEMENT)
    if written is None:
        return {}
    try:
        found = untrusted.decode(written, dict[str, Any], f"annotation {names.PLACEMENT}")
    except untrusted.ReadError:
        return {}
    granted = found.get("granted")
    return granted if isinstance(granted, Mapping) else {}


def _topology(told: Told) -> Iterator[str]:
    if "cpuset" in told:
        yield f"It was given CPUs {told['cpuset']} of its own."
    if "numaNodes" in told:
        policy = f" by topology policy {told['policy']}" if "policy" in told else ""
        yield f"It was aligned{policy} with NUMA node {told['numaNodes']}."
    for other in filter(None, told.get("others", "").split("; ")):
        yield f"NUMA node {other}."


def _devices(told: Told) -> Iterator[str]:
    kinds = sorted(topic for topic in told if not topic.endswith(_OTHERS))
    for kind in kinds:
        yield f"It was given {kind} {told[kind]}."
        for other in filter(None, told.get(f"{kind}{_OTHERS}", "").split("; ")):
            yield f"Not {kind} {other}."
