"""Pick devices one by one: the best score first, those on preferred PCIe switches before others."""

from collections.abc import Collection, Mapping, Sequence

from api.kubernetes import selectors
from domain.devices import inventory
from domain.devices.allocation import candidates, device_scores

Granted = inventory.Granted


def pick(
    pool: candidates.Pool,
    wanted: candidates.Wanted,
    scoring: device_scores.Scoring | None,
    *,
    most: int = 0,
    near: Collection[str] = (),
) -> tuple[Granted, ...] | candidates.Refusal:
    """Return from ``wanted.count`` to ``most`` devices, rather on the PCIe switches of ``near``."""
    granted: list[Granted] = []
    limit = max(most, wanted.count)
    for minor in _ordered(pool, _scores(pool, wanted, scoring), near):
        one = _granted(pool, wanted, minor)
        if one is not None:
            granted.append(one)
            if len(granted) == limit:
                break
    if len(granted) < wanted.count:
        return candidates.insufficient(pool.kind)
    return tuple(granted)


def _scores(
    pool: candidates.Pool, wanted: candidates.Wanted, scoring: device_scores.Scoring | None
) -> Mapping[int, int]:
    if scoring is None:
        return dict.fromkeys(pool.free, 0)
    scores: dict[int, int] = {}
    alike: dict[tuple[int, int], int] = {}
    for minor, free in pool.free.items():
        total = pool.total[minor]
        # Devices of which nothing is used offer the same amounts, mostly as one object.
        key = (id(total), id(free))
        if key not in alike:
            alike[key] = device_scores.device(scoring, wanted.per_device, total, free)
        scores[minor] = alike[key]
    return scores


def _ordered(
    pool: candidates.Pool, scores: Mapping[int, int], near: Collection[str]
) -> Sequence[int]:
    best = sorted(pool.free, key=lambda minor: (-scores[minor], minor))
    if not near:
        return best
    # The best device of every preferred switch comes first, then the second best of each.
    turn: dict[int, int] = {}
    seen: dict[str, int] = {}
    for minor in best:
        switch = candidates.switch(pool.known[minor])
        if switch in near:
            turn[minor] = seen.get(switch, 0)
            seen[switch] = turn[minor] + 1
    close = sorted(turn, key=lambda minor: (turn[minor], -scores[minor], minor))
    return [*close, *(minor for minor in best if minor not in turn)]


def _granted(pool: candidates.Pool, wanted: candidates.Wanted, minor: int) -> Granted | None:
    free = pool.free[minor]
    if not any(free.values()) or not candidates.fits(wanted.per_device, free):
        return None
    functions: tuple[inventory.Function, ...] = ()
    if wanted.hint.vf_selector is not None:
        selector = wanted.hint.vf_selector
        unused = [
            function
            for function in pool.known[minor].functions
            if (pool.kind, minor, function.bus_id) not in pool.functions
            and selectors.matches(selector, function.labels)
        ]
        if not unused:
            return None
        functions = (min(unused, key=lambda function: function.bus_id),)
    return Granted(minor, wanted.per_device, functions)
