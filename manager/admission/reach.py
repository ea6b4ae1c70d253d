"""Whether a webhook answers: decided late enough that one lost probe changes nothing."""

import dataclasses

_FEWEST_PROBES = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Patience:
    """How long things have to last before they count."""

    away_seconds: float = 10.0
    """No answer for this long: away."""
    back_seconds: float = 10.0
    """Answers for this long: back; twice as long after each time within the memory."""
    longest_back_seconds: float = 300.0
    memory_seconds: float = 3600.0
    """How long a time of being away counts against the next."""


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """What the probes up to now amount to."""

    away: bool | None = None
    """Whether no webhook answers; None before that is known."""
    answered: bool = False
    """What the last probe found."""
    turned: float = 0.0
    """Since when the probes find what the last one found."""
    probes: int = 0
    """How many found it."""
    times: tuple[float, ...] = ()
    """When it went away, as far back as that counts."""
    problem: str = ""
    """What the last probe that failed says."""


def probed(standing: Standing, problem: str, now: float, patience: Patience) -> Standing:
    """Take in one probe: a problem, or none."""
    answered = not problem
    if standing.probes and answered == standing.answered:
        probes, turned = standing.probes + 1, standing.turned
    else:
        probes, turned = 1, now
    times = tuple(one for one in standing.times if now - one < patience.memory_seconds)
    away = standing.away
    lasted = probes >= _FEWEST_PROBES and now - turned >= wait(times, patience, answered=answered)
    if lasted and away is not (not answered):
        away = not answered
        times = (*times, now) if away else times
    return Standing(away, answered, turned, probes, times, problem or standing.problem)


def wait(times: tuple[float, ...], patience: Patience, *, answered: bool) -> float:
    """Return how long a finding has to last: who comes and goes is trusted later and later."""
    if not answered:
        return patience.away_seconds
    doubled: float = patience.back_seconds * 2 ** min(max(len(times) - 1, 0), 16)
    return min(doubled, max(patience.longest_back_seconds, patience.back_seconds))
