"""When certificates have to be looked at again, so that tests can pass through years."""

from collections.abc import Sequence

from certs import rotation


def next_look(
    state: rotation.State, names: Sequence[str], now: float, policy: rotation.Policy
) -> float:
    """Return the instant at which a plan may next have a step, if nothing changes until then."""
    if rotation.plan(state, names, now, policy) is not None:
        return now
    instants = [rotation.renew_at(one.begins, one.ends) for one in state.authorities[-1:]]
    instants += [
        rotation.renew_at(leaf.begins, leaf.ends) for leaf in state.leaves if leaf.name in names
    ]
    for one in state.authorities:
        instants += [
            one.ends,
            one.published + policy.overlap_seconds,
            rotation._needed(one, policy),
        ]
    later = [instant for instant in instants if instant > now]
    return min(later, default=now + policy.overlap_seconds)
