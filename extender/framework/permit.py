"""Permit: the answers of several plug-ins about one pod, joined."""

import dataclasses
from collections.abc import Iterable
from typing import assert_never

from extender.framework import cycle, verdicts


@dataclasses.dataclass(frozen=True, slots=True)
class Permission:
    """What all plug-ins together say: refused, waiting, or allowed where it is neither."""

    refusal: cycle.Refusal | None = None
    waits: tuple[tuple[str, verdicts.Wait], ...] = ()
    wakes: tuple[str, ...] = ()
    """The keys of waits that may end by it."""

    @property
    def allowed(self) -> bool:
        """Whether the pod may be bound now."""
        return self.refusal is None and not self.waits

    @property
    def keys(self) -> tuple[str, ...]:
        """Return what the pod waits for."""
        return tuple(wait.key for _, wait in self.waits)

    @property
    def until(self) -> float:
        """Return when the first of its waits ends."""
        return min(wait.until for _, wait in self.waits)

    def expired(self) -> cycle.Refusal:
        """Return the refusal of a pod that has waited for the first of its waits in vain."""
        plugin, first = min(self.waits, key=lambda entry: entry[1].until)
        return cycle.Refusal(plugin, first.status)


def joined(answers: Iterable[tuple[str, verdicts.Permission]]) -> Permission:
    """Join answers by plug-in; the first rejection ends it."""
    waits: list[tuple[str, verdicts.Wait]] = []
    wakes: tuple[str, ...] = ()
    for plugin, answer in answers:
        match answer:
            case verdicts.Allow():
                wakes += answer.wakes
            case verdicts.Wait():
                waits.append((plugin, answer))
            case verdicts.Reject():
                return Permission(cycle.Refusal(plugin, answer.status), wakes=answer.wakes)
            case _:
                assert_never(answer)
    # Who waits for another plug-in has not arrived yet, so no pod is woken for it.
    return Permission(waits=tuple(waits), wakes=() if waits else wakes)
