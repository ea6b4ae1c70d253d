"""An index of claims by what a plug-in names, as informers index their objects. Pure."""

from collections.abc import Hashable, Mapping
from typing import Protocol

from extender.framework import views

Groups = Mapping[Hashable, Mapping[str, views.Claim]]
"""The claims of every group, by id."""


class Grouper(Protocol):
    """Says to which group a claim belongs."""

    name: str

    def group(self, claim: views.Claim) -> Hashable:
        """Return the key under which a claim is found."""


class ClaimIndex:
    """Groups the claims of a cluster state; one that follows it costs little with every change."""

    def __init__(self, claims: Mapping[str, views.Claim]) -> None:
        """Take the live claims by id; groups are made when they are first asked for."""
        self._claims = claims
        self._kept: dict[str, tuple[Grouper, dict[Hashable, dict[str, views.Claim]]]] = {}

    def groups(self, grouper: Grouper) -> Groups:
        """Return the groups of a plug-in; one of the same name groups in the same way."""
        found = self._kept.get(grouper.name)
        if found is not None:
            return found[1]
        groups: dict[Hashable, dict[str, views.Claim]] = {}
        for claim in self._claims.values():
            groups.setdefault(grouper.group(claim), {})[claim.id] = claim
        self._kept[grouper.name] = grouper, groups
        return groups

    def follow(self, delta: views.Delta) -> None:
        """Take in a change; a follower of the cluster state."""
        if not isinstance(delta, views.ClaimDelta):
            return
        for grouper, groups in self._kept.values():
            if delta.before is not None:
                key = grouper.group(delta.before)
                held = groups[key]
                held.pop(delta.id, None)
                if not held:
                    del groups[key]
            if delta.after is not None:
                groups.setdefault(grouper.group(delta.after), {})[delta.id] = delta.after
