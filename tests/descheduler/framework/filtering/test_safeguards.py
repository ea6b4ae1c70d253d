"""What keeps pods in every profile: exemptions, rollouts, the cool-down, gangs."""

import pytest

from api import names
from descheduler.framework.filtering import open_jobs, safeguards
from descheduler.framework.planning import history
from descheduler.model import objects
from tests.descheduler.builders import NOW, job, picture_of, pod, workload

EXEMPT = {names.ANNOTATION_EXEMPT: "true"}
EVICT = {names.ANNOTATION_FORCE_EVICT: ""}


def refusal(one, others=(), moves=history.NONE, jobs=(), **fields):
    seen = picture_of(pods=[one, *others], jobs=jobs, **fields)
    return safeguards.Safeguards(seen, open_jobs.of(seen), moves, 600.0).refusal(one)


@pytest.mark.parametrize(
    ("fields", "around", "reason"),
    [
        pytest.param({}, {}, "", id="ordinary"),
        pytest.param({"flaw": "spec"}, {}, safeguards.UNREADABLE, id="unreadable"),
        pytest.param({"annotations": EXEMPT}, {}, safeguards.EXEMPT, id="exempt"),
        pytest.param({"annotations": EXEMPT | EVICT}, {}, safeguards.EXEMPT, id="exempt first"),
        pytest.param(
            {}, {"exempt_namespaces": {"default"}}, safeguards.EXEMPT, id="namespace exempt"
        ),
        pytest.param(
            {}, {"workloads": [workload(is_exempt=True)]}, safeguards.EXEMPT, id="workload exempt"
        ),
        pytest.param(
            {"labels": {names.LABEL_QUOTA_PREEMPTIBLE: "false"}},
            {},
            safeguards.PROTECTED,
            id="not preemptible",
        ),
        pytest.param({"labels": {"app": "x"}}, {}, "", id="other labels"),
        pytest.param({"controller": ""}, {}, "", id="bare"),
        pytest.param(
            {}, {"workloads": [workload(is_rolling_out=True)]}, safeguards.ROLLING_OUT, id="rollout"
        ),
        pytest.param(
            {"annotations": EVICT},
            {"workloads": [workload(is_rolling_out=True)]},
            "",
            id="asked for during a rollout",
        ),
    ],
)
def test_what_keeps_a_pod(fields, around, reason):
    assert refusal(pod(node="n", **fields), **around) == reason


@pytest.mark.parametrize(
    ("created", "moved_at", "kept"),
    [
        pytest.param(NOW - 300, NOW - 320, True, id="its successor"),
        pytest.param(NOW - 700, NOW - 720, False, id="cooled down"),
        pytest.param(NOW - 300, NOW - 200, False, id="older than the move"),
    ],
)
def test_a_successor_cools_down(created, moved_at, kept):
    one = pod(node="n", created=created)
    moves = {"gone": history.Moved(moved_at, "default", "m", "web")}
    assert (refusal(one, moves=moves) == safeguards.COOL_DOWN) is kept
    assert refusal(pod(node="n", created=created, controller="ReplicaSet/other"), moves=moves) == ""


MEMBERS = [pod(f"web-{number}", "n", gang="default/g") for number in range(4)]


@pytest.mark.parametrize(
    ("gangs", "jobs", "kept"),
    [
        pytest.param({}, (), True, id="all members count"),
        pytest.param({"default/g": objects.Gang("default/g", 3)}, (), False, id="one to spare"),
        pytest.param(
            {"default/g": objects.Gang("default/g", 3)},
            [job("j", "web-1")],
            True,
            id="none left to spare",
        ),
        pytest.param(
            {},
            [job(f"j{number}", f"web-{number}") for number in (1, 2, 3)],
            False,
            id="the whole gang moves",
        ),
    ],
)
def test_a_gang_keeps_its_quorum(gangs, jobs, kept):
    first, *others = MEMBERS
    found = refusal(first, others, gangs=gangs, jobs=jobs)
    assert (found == safeguards.GANG) is kept


def test_members_that_ended_or_wait_do_not_count():
    others = [
        pod("web-8", "n", gang="default/g", phase="Succeeded"),
        pod("web-9", gang="default/g"),
        pod("web-7", "n", gang="default/other"),
    ]
    assert refusal(MEMBERS[0], others) == ""
