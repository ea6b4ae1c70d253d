"""Which jobs of a drain an abort ends, and which go on."""

import pytest

from cli.rebalancing import drain_abort
from descheduler.migration.plan import conditions
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import BEGUN, EVICTED, EVICTING, condition

REFUSED = condition("Eviction", "False", conditions.FAILED_EVICT)
STAYS = builders.pod("web-0", "n1")
LEAVES = builders.pod("web-0", "n1", leaves_at=builders.NOW)
ANOTHER = builders.pod("web-0", "n2", uid="another")


def job(name, *told, phase="Running", group="", pod="web-0", **fields):
    notes = {"koord.sh/migration-group": group} if group else {}
    status = {"conditions": told}
    return builders.job(name, pod, phase=phase, status=status, annotations=notes, **fields)


def names(jobs):
    return [one.name for one in jobs]


@pytest.mark.parametrize(
    ("one", "pod", "expected"),
    [
        pytest.param(job("j", phase=""), None, "ends", id="new"),
        pytest.param(job("j"), None, "ends", id="no eviction yet"),
        pytest.param(job("j", REFUSED), STAYS, "ends", id="refused"),
        pytest.param(job("j", REFUSED), LEAVES, "goes on", id="refused, and it leaves since"),
        pytest.param(job("j", REFUSED), None, "goes on", id="refused, and it is gone since"),
        pytest.param(job("j", BEGUN), STAYS, "undecided", id="announced"),
        pytest.param(job("j", BEGUN), LEAVES, "goes on", id="announced, and it leaves"),
        pytest.param(job("j", BEGUN), ANOTHER, "goes on", id="announced, and was replaced"),
        pytest.param(job("j", EVICTING), None, "goes on", id="accepted"),
        pytest.param(job("j", EVICTED), None, "goes on", id="evicted"),
        pytest.param(job("j", phase="Failed"), None, "", id="ended"),
        pytest.param(job("j", leaves_at=builders.NOW), None, "", id="being deleted"),
    ],
)
def test_a_job_ends_whose_pod_has_not_left(one, pod, expected):
    found = drain_abort.judged([one], {"j": pod})
    judged = {"ends": found.ends, "undecided": found.undecided, "goes on": found.goes_on}
    assert [word for word, jobs in judged.items() if jobs] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("told", "phase", "expected"),
    [
        pytest.param((), "Running", "ends", id="nothing begun"),
        pytest.param((REFUSED,), "Running", "ends", id="only refused"),
        pytest.param((REFUSED,), "Failed", "ends", id="refused to its end"),
        pytest.param((BEGUN,), "Running", "undecided", id="announced"),
        pytest.param((EVICTING,), "Running", "goes on", id="one leaves"),
        pytest.param((EVICTED,), "Succeeded", "goes on", id="one has moved"),
    ],
)
def test_a_group_ends_or_goes_on_as_a_whole(told, phase, expected):
    first = job("a", *told, phase=phase, group="g@1")
    other = job("b", group="g@1", pod="web-1")
    alone, elsewhere = job("c", pod="web-2"), job("d", group="g@2", pod="web-3")
    found = drain_abort.judged([first, other, alone, elsewhere], {"a": STAYS})
    judged = {"ends": found.ends, "undecided": found.undecided, "goes on": found.goes_on}
    of_other = next(word for word, jobs in judged.items() if other in jobs)
    assert of_other == expected
    assert {"c", "d"} <= set(names(found.ends))


def test_only_what_no_condition_tells_is_asked_of_pods():
    asked = [told for told in (None, BEGUN, REFUSED, EVICTING, EVICTED)
             if drain_abort.needs_pod(job("j", *([told] if told else [])))]  # fmt: skip
    assert asked == [BEGUN, REFUSED]


def test_what_goes_on_is_named_with_the_reason():
    alone = [job(f"j{n}", pod=f"web-{n}") for n in range(7)]
    gang = [job(f"g{n}", pod=f"m-{n}", group="default/train@1700000000") for n in range(2)]
    of_pods, of_gang = drain_abort.lines([*gang, *alone])
    assert of_pods == (
        "7 moves go on, since their pods are leaving already: default/web-0, default/web-1, "
        "default/web-2, default/web-3, default/web-4 and 2 more"
    )
    assert of_gang == (
        "2 moves go on, since a pod of gang default/train is leaving already, which moves as a "
        "whole: default/m-0, default/m-1"
    )
    assert list(drain_abort.lines(alone[:1])) == [
        "1 move goes on, since its pod is leaving already: default/web-0"
    ]
