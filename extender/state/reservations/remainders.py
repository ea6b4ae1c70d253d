"""What reservations keep beyond what their owners hold, so that nothing counts twice. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from extender.state import allocations, claims

NONE: Final[Mapping[str, claims.Claim]] = MappingProxyType({})


def whole(held: Iterable[claims.Claim]) -> Mapping[str, claims.Claim]:
    """Return the claims of reservations by id, with everything that was allocated to them."""
    kind = claims.ClaimKind.RESERVATION
    found = {claim.id: claim for claim in held if claim.kind is kind}
    return found or NONE


def counted(
    held: Sequence[claims.Claim], reserved: Mapping[str, claims.Claim]
) -> tuple[claims.Claim, ...]:
    """Return the claims of a node, those of reservations without what their owners hold of it."""
    if not reserved:
        return tuple(held)
    owners: dict[str, list[claims.Claim]] = {}
    for claim in held:
        if claim.consumes in reserved:
            owners.setdefault(claim.consumes, []).append(claim)
    return tuple(
        [_without(claim, owners[claim.id]) if claim.id in owners else claim for claim in held]
    )


def _without(claim: claims.Claim, owners: Sequence[claims.Claim]) -> claims.Claim:
    left: dict[str, msgspec.Struct] = {}
    divided = False
    for name, granted in claim.allocations.items():
        taken = [one.allocations[name] for one in owners if name in one.allocations]
        whole = allocations.divisible(granted) if taken else None
        kept = granted if whole is None else whole.without(taken)
        divided = divided or whole is not None
        if kept is not None:
            left[name] = kept
    if not divided:
        return claim
    return msgspec.structs.replace(claim, allocations=left or allocations.NONE)
