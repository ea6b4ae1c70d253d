"""Plugins of a scheduler profile: which are enabled at an extension point, in which order.

The semantics are those of kube-scheduler: ``multiPoint`` changes the standard set, a set of one
extension point changes that, ``*`` disables everything that was enabled before.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

MULTI_POINT: Final = "multiPoint"
FILTER: Final = "filter"
SCORE: Final = "score"
RESERVE: Final = "reserve"
PERMIT: Final = "permit"
POST_FILTER: Final = "postFilter"
TAKING_EFFECT: Final = (FILTER, SCORE, RESERVE, PERMIT, POST_FILTER)
"""Extension points at which plug-ins are enabled and disabled one by one."""
DECIDING: Final = (MULTI_POINT, *TAKING_EFFECT)
"""What a profile may say about them."""
POINTS: Final = (
    *("preEnqueue", "queueSort", "preFilter", FILTER, POST_FILTER, "preScore", SCORE),
    *(RESERVE, PERMIT, "preBind", "bind", "postBind", MULTI_POINT),
)
"""Extension points of a profile; the others of a plug-in follow those at which it decides."""
EVERY: Final = "*"


class Enabled(NamedTuple):
    """A plug-in at an extension point."""

    name: str
    weight: int = 1
    """How much its score counts."""


class PluginSet(NamedTuple):
    """What a profile says about one extension point."""

    enabled: tuple[Enabled, ...] = ()
    disabled: frozenset[str] = frozenset()

    def drops(self, name: str) -> bool:
        """Tell whether a plug-in is disabled here."""
        return EVERY in self.disabled or name in self.disabled


Sets = Mapping[str, PluginSet]
"""By extension point."""
_NONE: Final = PluginSet()


def resolved(point: str, standard: Sequence[Enabled], sets: Sets) -> tuple[Enabled, ...]:
    """Return the plug-ins of an extension point in the order in which they are asked."""
    general = merged(standard, sets.get(MULTI_POINT, _NONE))
    own = sets.get(point, _NONE)
    known, chosen = _names(general), _names(own.enabled)
    return (
        *(one for one in own.enabled if one.name in known),
        *(one for one in general if one.name not in chosen and not own.drops(one.name)),
        *(one for one in own.enabled if one.name not in known),
    )


def anywhere(standard: Sequence[Enabled], sets: Sets) -> frozenset[str]:
    """Return the plug-ins that are enabled at one extension point at least."""
    return _names(one for point in TAKING_EFFECT for one in resolved(point, standard, sets))


def merged(standard: Sequence[Enabled], own: PluginSet) -> tuple[Enabled, ...]:
    """Return the standard set as changed: what is enabled anew keeps its place in the order."""
    replaced = {one.name: one for one in own.enabled}
    kept = [replaced.get(one.name, one) for one in standard if not own.drops(one.name)]
    known = _names(kept)
    return (*kept, *(one for one in own.enabled if one.name not in known))


def _names(chosen: Iterable[Enabled]) -> frozenset[str]:
    return frozenset(one.name for one in chosen)
