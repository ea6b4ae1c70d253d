"""Match policies: which members count towards the minimum."""

import pytest

from domain.gangs import declaration, policy

ONLY, BOTH, ONCE = declaration.MatchPolicy
CASES = {
    "only waiting, enough": (ONLY, 3, 0, False, True),
    "only waiting, bound ones do not count": (ONLY, 2, 9, True, False),
    "waiting and running, together enough": (BOTH, 1, 2, True, True),
    "waiting and running, too few": (BOTH, 1, 1, True, False),
    "once satisfied, never bound": (ONCE, 2, 0, False, False),
    "once satisfied, bound ones alone do not count": (ONCE, 2, 1, False, False),
    "once satisfied, enough wait": (ONCE, 3, 0, False, True),
    "once satisfied, bound once": (ONCE, 1, 0, True, True),
}


def gang(match_policy, least=3):
    return declaration.Gang(
        "ns/g", "ns", "g", declaration.Source.ANNOTATIONS, least, match_policy=match_policy
    )


@pytest.mark.parametrize(("rule", "waiting", "bound", "ever", "due"), CASES.values(), ids=CASES)
def test_policies(rule, waiting, bound, ever, due):
    assert policy.satisfied(gang(rule), waiting, bound, ever) is due
