"""What ConfigMap koord-scheduler-config tells the extender's plug-ins."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.koordinator.metadata import qos
from api.plugin_args import models
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain.scheduler_settings import documents, known_names, plugin_sets

REFUSED = Trap(
    "arguments.refused", Severity.ERROR,
    "koord-scheduler-config cannot be used: the extender keeps what it read before",
    "correct what is named; docs/scheduler-arguments.md lists every field",
)  # fmt: skip
DOUBTFUL = Trap(
    "arguments.without-effect", Severity.WARNING,
    "koord-scheduler-config says something that has no effect",
    "remove what is named, or write what was meant",
)  # fmt: skip
SHADOWED = Trap(
    "arguments.shadowed", Severity.WARNING,
    "The settings of the extender and koord-scheduler-config give arguments to the same plug-in: "
    "the ConfigMap counts",
    "remove one of the two",
)  # fmt: skip
NOT_ENABLED = Trap(
    "arguments.not-enabled", Severity.WARNING,
    "koord-scheduler-config gives arguments to a plug-in that is not enabled",
    "enable it in plugins of the ConfigMap or in plugins.enabled of the extender's settings, or "
    "remove its arguments",
)  # fmt: skip
NO_CPUS = Trap(
    "arguments.cpus-not-given", Severity.WARNING,
    "Pods of class LSE or LSR get no CPUs of their own: the plug-in that gives them is not enabled",
    "enable `NodeNUMAResource` (docs/cpu-placement.md), or label such pods LS",
)  # fmt: skip

_NUMA: Final = "NodeNUMAResource"
_OWN_CPUS: Final = frozenset({qos.QoS.LSE, qos.QoS.LSR})
_MOST: Final = 20
_IN_SETTINGS: Final = {"loadAware": models.LOAD_AWARE}


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Read the ConfigMap as the extender does."""
    maps = facts.given(known.config_maps)
    data = facts.section(maps.get(names.CONFIG_MAP_SCHEDULER) or {}, "data")
    where = f"{known.namespace}/{names.CONFIG_MAP_SCHEDULER}"
    reading = documents.read({str(key): str(text) for key, text in data.items()})
    for fault in reading.faults[:_MOST]:
        yield REFUSED.found(f"ConfigMap {known.namespace}/{fault}", where)
    for warning in reading.warnings[:_MOST]:
        yield DOUBTFUL.found(f"ConfigMap {known.namespace}/{warning}", where)
    configured = reading.settings.arguments if reading.settings else {}
    own = facts.section(facts.settings(maps, "extender"), "plugins")
    for key, name in _IN_SETTINGS.items():
        if own.get(key) and name in configured:
            yield SHADOWED.found(f"{where} and plugins.{key} of ConfigMap koord-extender", where)
    if reading.settings is None:
        return  # The extender goes by what it read before.
    enabled = _enabled(own, reading.settings)
    for name in sorted(configured.keys() - enabled):
        yield NOT_ENABLED.found(f"{where} gives arguments to {name}, which is not enabled", where)
    if _NUMA not in enabled:
        yield from _without_cpus(known)


def _enabled(own: Mapping[str, Any], written: documents.SchedulerSettings) -> frozenset[str]:
    """Return the plug-ins that the extender's settings and the ConfigMap enable."""
    named = own.get("enabled", known_names.ENABLED)
    listed = named if isinstance(named, Sequence) and not isinstance(named, str) else ()
    standard = [plugin_sets.Enabled(known_names.full(str(name))) for name in listed]
    return plugin_sets.anywhere(standard, written.plugins)


def _without_cpus(known: facts.Facts) -> Iterator[findings.Finding]:
    running = [
        pod.key
        for pod in facts.given(known.pods)
        if not pod.ended and qos.qos_of(pod.labels) in _OWN_CPUS
    ]
    if running:
        others = f" and {len(running) - 1} more" if len(running) > 1 else ""
        yield NO_CPUS.found(
            f"{min(running)}{others}, of class LSE or LSR, get no CPUs of their own: "
            f"{_NUMA} is not enabled",
            f"pod {min(running)}",
        )


CHECK = findings.Check(
    "arguments",
    "the arguments of plug-ins are understood",
    (REFUSED, DOUBTFUL, SHADOWED, NOT_ENABLED, NO_CPUS),
    run,
)
