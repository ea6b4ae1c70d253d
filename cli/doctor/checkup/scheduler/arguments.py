"""What ConfigMap koord-scheduler-config tells the extender's plug-ins."""

from collections.abc import Iterator
from typing import Final

from api import names
from api.plugin_args import models
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain.scheduler_settings import documents

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


CHECK = findings.Check(
    "arguments", "the arguments of plug-ins are understood", (REFUSED, DOUBTFUL, SHADOWED), run
)
