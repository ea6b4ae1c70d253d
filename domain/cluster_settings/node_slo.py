"""What counts on a node: its NodeSLO with the published defaults under it.

The defaults of a class hold for the parts that are switched on; for a part that is switched off
the kernel's neutral values hold. Block devices and network keep what is written: who reads
them asks first whether they are switched on.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

from api.koordinator.metadata import pod_overrides as ceilings
from api.koordinator.metadata import qos
from api.koordinator.settings import layers, slo, strategies
from api.wire import quantity

Class = Literal["lsrClass", "lsClass", "beClass", "systemClass"]
CLASSES: Final[tuple[Class, ...]] = ("lsrClass", "lsClass", "beClass", "systemClass")

THRESHOLDS: Final[Mapping[str, Any]] = {
    "enable": False,
    "cpuSuppressThresholdPercent": 65,
    "cpuSuppressPolicy": "cpuset",
    "memoryEvictThresholdPercent": 70,
    "cpuEvictPolicy": "evictByRealLimit",
}
BURST: Final[Mapping[str, Any]] = {
    "policy": "none",
    "cpuBurstPercent": 1000,
    "cfsQuotaBurstPercent": 300,
    "cfsQuotaBurstPeriodSeconds": -1,
    "sharePoolThresholdPercent": 50,
}
SYSTEM: Final[Mapping[str, Any]] = {"totalNetworkBandwidth": "0"}
EVICT_WINDOW_SECONDS: Final = 300
"""How long cpu pressure is averaged before it evicts, where nothing is said."""
_MARGIN_PERCENT: Final = 2


def _cpu(identity: int, *, expeller: bool) -> dict[str, Any]:
    return {
        "enable": False,
        "groupIdentity": identity,
        "schedIdle": 0,
        "coreExpeller": expeller,
    }


def _memory(ratio: int, scale: int, shift: int) -> dict[str, Any]:
    return {
        "enable": False,
        "minLimitPercent": 0,
        "lowLimitPercent": 0,
        "throttlingPercent": 0,
        "wmarkRatio": ratio,
        "wmarkScalePermill": scale,
        "wmarkMinAdj": shift,
        "priorityEnable": 0,
        "priority": 0,
        "oomKillGroup": 0,
    }


def _cache(end: int) -> dict[str, Any]:
    return {
        "enable": False,
        "catRangeStartPercent": 0,
        "catRangeEndPercent": end,
        "mbaPercent": 100,
    }


_BLOCKS: Final[Mapping[str, Any]] = {"enable": False}
_NETWORK: Final[Mapping[str, Any]] = {
    "enable": False,
    "ingressRequest": 0,
    "ingressLimit": 0,
    "egressRequest": 0,
    "egressLimit": 0,
}


def _class(
    cpu: Mapping[str, Any], memory: Mapping[str, Any], cache: Mapping[str, Any]
) -> Mapping[str, Any]:
    return {
        "cpuQOS": cpu,
        "memoryQOS": memory,
        "resctrlQOS": cache,
        "blkioQOS": _BLOCKS,
        "networkQOS": _NETWORK,
    }


_ONLINE: Final = _class(_cpu(2, expeller=True), _memory(95, 20, -25), _cache(100))
_NEUTRAL: Final = _class(_cpu(0, expeller=False), _memory(0, 50, 0), _cache(100))
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "lsrClass": _ONLINE,
    "lsClass": _ONLINE,
    "beClass": _class(_cpu(-1, expeller=False), _memory(95, 20, 50), _cache(30)),
    "systemClass": _NEUTRAL,
    "cgroupRoot": {"blkioQOS": _BLOCKS},
}
_POLICIES: Final = {"cpuPolicy": "groupIdentity", "netQOSPolicy": "tc"}
_NEUTRALIZED: Final = ("cpuQOS", "memoryQOS", "resctrlQOS")
_CLASS_OF: Final[Mapping[qos.QoS, Class]] = {
    qos.QoS.LSE: "lsrClass",
    qos.QoS.LSR: "lsrClass",
    qos.QoS.LS: "lsClass",
    qos.QoS.BE: "beClass",
    qos.QoS.SYSTEM: "systemClass",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Enforced:
    """Everything that a node enforces, complete."""

    thresholds: strategies.ResourceThresholds
    burst: strategies.CPUBurstStrategy
    system: strategies.SystemStrategy
    policies: strategies.QOSPolicies
    classes: Mapping[Class, strategies.ClassQOS]
    root: strategies.ClassQOS
    """Settings of the root of the cgroup tree."""
    host_applications: tuple[strategies.HostApplication, ...]
    extensions: Mapping[str, Any]
    overrides: ceilings.PodOverrideLimits = ceilings.DEFAULT
    """What labels and annotations of pods may ask for at most."""

    def of(self, quality: qos.QoS) -> strategies.ClassQOS:
        """Return the settings of a QoS class; LSE has those of LSR, no class those of LS."""
        return self.classes[_CLASS_OF.get(quality, "lsClass")]

    @property
    def memory_evict_lower_percent(self) -> int:
        """Memory usage at which eviction stops."""
        given = self.thresholds.memory_evict_lower_percent
        upper = self.thresholds.memory_evict_threshold_percent
        return given if given is not None else max((upper or 0) - _MARGIN_PERCENT, 0)

    @property
    def cpu_evict_lower_percent(self) -> int | None:
        """Cpu usage at which eviction stops; None where no usage starts it."""
        given = self.thresholds.cpu_evict_lower_percent
        upper = self.thresholds.cpu_evict_threshold_percent
        if upper is None:
            return None
        return given if given is not None else max(upper - _MARGIN_PERCENT, 0)

    @property
    def cpu_evict_window_seconds(self) -> int:
        """How long cpu pressure is averaged before it evicts."""
        return self.thresholds.cpu_evict_time_window_seconds or EVICT_WINDOW_SECONDS


def completed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec, in either shape, with everything it leaves unsaid.

    Raises a ReadError that names the field where the spec cannot be read.
    """
    said = layers.said(slo.read_node_slo({"spec": spec}).spec.wire())
    system = layers.merge(SYSTEM, said.get("systemStrategy") or {})
    bandwidth = quantity.canonical(system["totalNetworkBandwidth"])
    complete = {
        "resourceUsedThresholdWithBE": layers.merge(
            THRESHOLDS, said.get("resourceUsedThresholdWithBE") or {}
        ),
        "resourceQOSStrategy": _quality(said.get("resourceQOSStrategy") or {}),
        "cpuBurstStrategy": layers.merge(BURST, said.get("cpuBurstStrategy") or {}),
        "systemStrategy": {**system, "totalNetworkBandwidth": bandwidth},
    }
    if "podOverrideLimits" in said:
        complete["podOverrideLimits"] = said["podOverrideLimits"]
    if "hostApplications" in said:
        complete["hostApplications"] = said["hostApplications"]
    return complete


def _quality(said: Mapping[str, Any]) -> dict[str, Any]:
    complete: dict[str, Any] = {"policies": {**_POLICIES, **said.get("policies", {})}}
    for name, default in _DEFAULTS.items():
        written = dict(said.get(name) or {})
        written.pop(slo.BLOCK_IO_SHORTHAND, None)  # Folded into blkioQOS by the reader.
        merged = layers.merge(default, written)
        complete[name] = _switched(merged) if name in CLASSES[:3] else merged
    return complete


def _switched(merged: Mapping[str, Any]) -> dict[str, Any]:
    """Make the parts of a class that are switched off neutral."""
    return {
        part: _NEUTRAL[part] if part in _NEUTRALIZED and not settings["enable"] else settings
        for part, settings in merged.items()
    }


def read(raw: Mapping[str, Any]) -> Enforced:
    """Read what a NodeSLO makes its node enforce; a ReadError names a field that cannot be."""
    return of_spec(raw.get("spec") or {}, slo.read_node_slo(raw).extensions)


def of_spec(spec: Mapping[str, Any], extensions: Mapping[str, Any] | None = None) -> Enforced:
    """Return what a spec, in either shape, makes a node enforce."""
    complete = slo.Spec.model_validate(completed(spec))
    quality = complete.resource_qos_strategy or strategies.ResourceQOSStrategy()
    nothing = strategies.ClassQOS()
    return Enforced(
        thresholds=complete.resource_used_threshold_with_be or strategies.ResourceThresholds(),
        burst=complete.cpu_burst_strategy or strategies.CPUBurstStrategy(),
        system=complete.system_strategy or strategies.SystemStrategy(),
        policies=quality.policies or strategies.QOSPolicies(),
        classes={
            "lsrClass": quality.lsr_class or nothing,
            "lsClass": quality.ls_class or nothing,
            "beClass": quality.be_class or nothing,
            "systemClass": quality.system_class or nothing,
        },
        root=quality.cgroup_root or nothing,
        host_applications=complete.host_applications,
        extensions=extensions or {},
        overrides=_overrides(complete.pod_override_limits),
    )


def _overrides(said: ceilings.PodOverrideLimits | None) -> ceilings.PodOverrideLimits:
    """Return what is said, and the default for what is not."""
    given = {} if said is None else {name: getattr(said, name) for name in said.model_fields_set}
    return ceilings.DEFAULT.but(**{k: value for k, value in given.items() if value is not None})


DEFAULT: Final = of_spec({})
"""What a node enforces without a NodeSLO: it suppresses and evicts nothing."""
