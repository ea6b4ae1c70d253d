"""What one tick says about hooks, handed to those that answer container runtimes. Pure."""

import msgspec

from agent.decide import catalogue, planner
from agent.model import cgroup_layout, live_switches


class Frozen(msgspec.Struct, frozen=True):
    """The look of a tick, and how far its strategies go."""

    look: catalogue.Look
    enforced: tuple[str, ...]
    """The strategies that are enforced, by name."""
    scope: planner.Scope
    live: live_switches.Here
    layout: cgroup_layout.Layout
    seen: object
    """What rules follow from; equal as long as nothing of it has changed."""


def freeze(by: planner.Planner, look: catalogue.Look, arranged: cgroup_layout.Layout) -> Frozen:
    """Return what the latest step of a planner says."""
    on = (one for one in by.strategies if not one.gates or by.gates & set(one.gates))
    enforced = tuple(one.name for one in on if by.mode(one.name) is planner.Mode.ENFORCE)
    enabled = msgspec.structs.replace(look, enabled=by.gates)
    return Frozen(enabled, enforced, by.scope, by.live, arranged, by.seen)
