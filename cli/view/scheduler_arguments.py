"""What ConfigMap koord-scheduler-config says, in sentences for people. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from api.wire import base
from domain.scheduler_settings import documents
from domain.scheduler_settings.plugin_sets import PluginSet

_LONGEST: Final = 160


def told(data: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments of plug-ins, and why a document is not used."""
    reading = documents.read(data)
    if reading.settings is None:
        more = f" and {len(reading.faults) - 1} more" if len(reading.faults) > 1 else ""
        return (f"is refused, what was read before stays in force: {reading.faults[0]}{more}",)
    said = [
        f"{name} uses {_cut(base.encoded(arguments))}"
        for name, arguments in sorted(reading.settings.arguments.items())
    ]
    for point, own in sorted(reading.settings.plugins.items()):
        said.extend(f"{point}: {sentence}" for sentence in _changes(own))
    return tuple(said)


def _changes(own: PluginSet) -> Iterator[str]:
    if own.disabled:
        yield f"{', '.join(sorted(own.disabled))} disabled"
    if own.enabled:
        named = (
            one.name if one.weight == 1 else f"{one.name} ({one.weight})" for one in own.enabled
        )
        yield f"{', '.join(named)} enabled"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
