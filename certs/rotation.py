"""When to issue what: values in, the next steps out; no keys, no files, no clock.

A new authority is in the bundle for `overlap_seconds` before anything is signed by it, and an
old one stays there until the last leaf it signed has ended. So a leaf is trusted by everybody
whose bundle is not older than the overlap, also when the steps are taken late, by up to a
twelfth of the life of a leaf.
"""

import dataclasses
from collections.abc import Sequence

_SLACK_SECONDS = 7 * 24 * 3600.0
"""An authority lives a little longer than asked for, so that slow clocks accept it at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """How long things live."""

    authority_seconds: float = 3 * 365 * 24 * 3600.0
    leaf_seconds: float = 90 * 24 * 3600.0
    overlap_seconds: float = 24 * 3600.0
    """How long after a bundle was published a client may still hold the one before."""

    def __post_init__(self) -> None:
        """Refuse lives that leave no room for an overlap."""
        if 6 * (self.leaf_seconds + self.overlap_seconds) > self.authority_seconds:
            raise ValueError(
                "authority_seconds must be at least six times leaf_seconds plus overlap_seconds,"
                " else a leaf could outlive the authority that signed it"
            )
        if self.overlap_seconds > self.leaf_seconds / 4:
            raise ValueError(
                "overlap_seconds must be at most a quarter of leaf_seconds, else a server that"
                " is slow to take its new leaf could serve one that has ended"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Authority:
    """One certificate authority in the bundle."""

    id: str
    begins: float
    ends: float
    published: float
    """Since when the bundle holds it."""
    last_leaf: float = 0.0
    """When the last leaf that it signed ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """One served certificate."""

    name: str
    authority: str
    begins: float
    ends: float


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """Every authority of the bundle, oldest first, and the newest leaf of each name."""

    authorities: tuple[Authority, ...] = ()
    leaves: tuple[Leaf, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Publish:
    """Create an authority and put it into the bundle."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Sign:
    """Issue a leaf by an authority of the bundle."""

    name: str
    authority: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Withdraw:
    """Take an authority out of the bundle and forget its key."""

    authority: str
    reason: str


Step = Publish | Sign | Withdraw


def due(begins: float, ends: float, now: float) -> bool:
    """Tell whether a certificate has lived two thirds of its life."""
    return now >= renew_at(begins, ends)


def renew_at(begins: float, ends: float) -> float:
    """Return the instant at which two thirds of a life are over."""
    return begins + (ends - begins) * 2 / 3


def plan(state: State, names: Sequence[str], now: float, policy: Policy) -> Step | None:
    """Return the one next step, None when nothing is to be done at this instant."""
    if not state.authorities:
        return Publish("there is no authority")
    newest = state.authorities[-1]
    if due(newest.begins, newest.ends, now):
        return Publish(f"authority {newest.id} has lived two thirds of its life")
    if newest.ends - newest.begins > policy.authority_seconds + _SLACK_SECONDS:
        return Publish(f"authority {newest.id} was made to live longer than is wanted now")
    signer = _signer(state, now, policy)
    for name in names:
        reason = _leaf_reason(state, name, min(now + policy.leaf_seconds, signer.ends), now)
        if reason is not None:
            return Sign(name, signer.id, reason)
    for authority in state.authorities:
        if (
            authority is not signer
            and authority is not newest
            and now >= _needed(authority, policy)
        ):
            return Withdraw(authority.id, f"the last leaf of authority {authority.id} has ended")
    return None


def published(state: State, authority: Authority) -> State:
    """Return the state after an authority was put into the bundle."""
    return dataclasses.replace(state, authorities=(*state.authorities, authority))


def signed(state: State, leaf: Leaf) -> State:
    """Return the state after a leaf was issued."""
    authorities = tuple(
        dataclasses.replace(one, last_leaf=max(one.last_leaf, leaf.ends))
        if one.id == leaf.authority
        else one
        for one in state.authorities
    )
    others = tuple(one for one in state.leaves if one.name != leaf.name)
    return State(authorities, (*others, leaf))


def withdrawn(state: State, authority: str) -> State:
    """Return the state after an authority was taken out of the bundle."""
    kept = tuple(one for one in state.authorities if one.id != authority)
    return dataclasses.replace(state, authorities=kept)


def _needed(authority: Authority, policy: Policy) -> float:
    """Return until when a client with an old view may meet a leaf of this authority."""
    return authority.last_leaf + policy.overlap_seconds


def _signer(state: State, now: float, policy: Policy) -> Authority:
    """Return the newest authority that everybody knows, or the newest one if none is any good."""
    known = [
        one
        for one in state.authorities
        if now >= one.published + policy.overlap_seconds and one.begins <= now < one.ends
    ]
    first = [one for one in state.authorities if one.ends > now]
    # Before anybody can know any authority the oldest is the one known longest.
    return known[-1] if known else (first or list(state.authorities))[0]


def _leaf_reason(state: State, name: str, until: float, now: float) -> str | None:
    leaf = next((one for one in state.leaves if one.name == name), None)
    if leaf is None:
        return f"{name} has no certificate"
    if all(one.id != leaf.authority for one in state.authorities):
        return f"the authority that signed {name} is not in the bundle"
    if now < leaf.begins:
        return f"the certificate of {name} is not valid yet; the clock went back"
    # One that ends with its authority is not helped by another that ends with it, too.
    if due(leaf.begins, leaf.ends, now) and until > leaf.ends:
        return f"the certificate of {name} has lived two thirds of its life"
    return None
