"""What a move is expected to bring, from the picture that it was decided on. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from descheduler.framework.planning import round_plan
from descheduler.gain import measured_load
from descheduler.model import picture, podinfo
from descheduler.receipts import receipt

_LONGEST: Final = 8
"""Resources that are described."""


def receipts(
    moves: Iterable[round_plan.Move], seen: picture.Picture, loads: measured_load.Loads
) -> Mapping[str, receipt.Receipt]:
    """Return the receipts of the moves of a round by uid of the pod.

    `loads` is what was measured, with the moves of the round made one after another.
    """
    return {move.suggestion.pod.uid: _receipt(move, seen, loads) for move in moves}


def _receipt(
    move: round_plan.Move, seen: picture.Picture, loads: measured_load.Loads
) -> receipt.Receipt:
    pod, target = move.suggestion.pod, move.target
    before = receipt.Ends(loads.percents(pod.node), loads.percents(target))
    loads.move(pod, target)
    expected = receipt.Ends(loads.percents(pod.node), loads.percents(target))
    worth = move.worth
    report = seen.usage.get(pod.node)
    used = report.by_pod.get(pod.key, podinfo.NOTHING) if report is not None else podinfo.NOTHING
    return receipt.Receipt(
        sentence=_sentence(move, before, expected),
        profile=move.profile,
        plugin=move.suggestion.plugin,
        purpose=move.suggestion.purpose.value,
        pod=pod.key,
        source=pod.node,
        target=target,
        at=seen.now,
        gain=round(worth.gain, 2),
        cost=round(worth.cost, 2),
        used=dict(sorted(used.items())[:_LONGEST]),
        before=before,
        expected=expected,
        quality=quality(pod, seen),
    )


def quality(pod: podinfo.Pod, seen: picture.Picture) -> receipt.Quality:
    """Return how a pod fares, as far as its status and its agent tell."""
    report = seen.usage.get(pod.node)
    restarts = sum(one.restarts for one in pod.containers)
    if report is None:
        return receipt.Quality(restarts)
    slowed = dict(report.slowed.get(pod.key, {}))
    return receipt.Quality(restarts, slowed, report.throttled.get(pod.key))


def _sentence(move: round_plan.Move, before: receipt.Ends, after: receipt.Ends) -> str:
    pod, target, worth = move.suggestion.pod, move.target, move.worth
    ends = receipt.change(pod.node, before.source, after.source)
    if target:
        ends = f"{ends}; {receipt.change(target, before.target, after.target)}"
    return f"expected: {ends}; {worth.gain:.1f} points for a cost of {worth.cost:.1f}"
