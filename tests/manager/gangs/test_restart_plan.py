"""When a gang that has lost a pod is restarted, and which pods leave."""

import json

import pytest

from manager.gangs import quorum, restart_plan
from tests.manager.gangs import ganged

NOW = 10_000.0
WALL = ganged.CREATED + 5_000.0
AT = restart_plan.Now(NOW, WALL)
LOST = quorum.Memory(3, True, NOW - 5, NOW - 4, NOW - 5)
KNOWN = restart_plan.History({}, NOW - 3600)


def gang(name="g", namespace="default", count=2, repair="restart", groups=(), **given):
    notes = {"min": 3, "repair": repair}
    if groups:
        notes["groups"] = json.dumps(groups)
    return [
        ganged.pod(f"{name}-{number}", name, namespace, node="n1", **notes, **given)
        for number in range(count)
    ]


def decided(*pods, memory=LOST, history=KNOWN, at=AT, gang_id="default/g"):
    cluster = ganged.Cluster().put(*pods)
    together = restart_plan.related(cluster.observed(gang_id), cluster.book.observed)
    return restart_plan.decided(together, memory, history, at)


def leaving(found):
    assert isinstance(found, restart_plan.Restart), found
    return [pod.key for pod in found.pods]


def test_all_pods_that_are_left_leave() -> None:
    assert leaving(decided(*gang())) == ["default/g-0", "default/g-1"]


@pytest.mark.parametrize("repair", ["none", "replace", "", "Restart", "restart " * 9])
def test_nothing_happens_without_the_annotation(repair) -> None:
    assert decided(*gang(repair=repair)) is None


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        pytest.param(quorum.Memory(3, True), None, id="complete"),
        pytest.param(quorum.Memory(3), None, id="gathers"),
        pytest.param(
            quorum.Memory(3, True, NOW - 1, NOW, NOW - 1), restart_plan.Later(1.0), id="just-lost"
        ),
        pytest.param(LOST, restart_plan.Restart, id="lost"),
        pytest.param(
            quorum.Memory(3, True, left_at=NOW - 10), restart_plan.Restart, id="replaced-meanwhile"
        ),
        pytest.param(
            quorum.Memory(3, True, left_at=NOW - 100), None, id="replaced-long-ago"
        ),
        pytest.param(
            quorum.Memory(3, True, NOW - 500, NOW - 499, NOW - 500),
            restart_plan.Restart,
            id="lost-for-long",
        ),
        pytest.param(
            quorum.Memory(3, True, NOW - 40, NOW - 10), restart_plan.Restart, id="found-incomplete"
        ),
        pytest.param(
            quorum.Memory(3, True, NOW - 20, NOW + 10), restart_plan.Later(10.0), id="in-its-grace"
        ),
    ],
)  # fmt: skip
def test_the_loss_decides(memory, expected) -> None:
    found = decided(*gang(), memory=memory)
    assert found == expected if not isinstance(expected, type) else isinstance(found, expected)


@pytest.mark.parametrize(
    ("last", "since", "created", "seconds"),
    [
        pytest.param(None, 3600, 5000, None, id="never"),
        pytest.param(700, 3600, 5000, None, id="long-ago"),
        pytest.param(100, 3600, 5000, 500, id="lately"),
        pytest.param(None, 60, 5000, None, id="a-pod-is-older-than-the-leader"),
        pytest.param(None, 60, 300, 300, id="all-pods-may-come-from-a-restart"),
        pytest.param(None, 200, 50, 400, id="a-restart-before-the-leader"),
    ],
)
def test_at_most_once_in_ten_minutes(last, since, created, seconds) -> None:
    """Also after another leader has restarted it, of which only the age of its pods tells."""
    history = restart_plan.History({} if last is None else {"default/g": NOW - last}, NOW - since)
    found = decided(*gang(created=WALL - created), history=history)
    if seconds is None:
        assert isinstance(found, restart_plan.Restart)
    else:
        assert isinstance(found, restart_plan.Later)
        assert found.seconds == pytest.approx(seconds)
        assert "600 s" in found.why


@pytest.mark.parametrize(
    ("namespace", "names_it", "repair", "together"),
    [
        pytest.param("default", True, "none", True, id="same-namespace"),
        pytest.param("default", False, "restart", False, id="named-by-one-only"),
        pytest.param("other", True, "restart", True, id="both-namespaces-ask"),
        pytest.param("other", True, "none", False, id="the-other-does-not-ask"),
        pytest.param("other", False, "restart", False, id="a-stranger-is-named"),
    ],
)
def test_gangs_of_a_group_restart_together(namespace, names_it, repair, together) -> None:
    groups = ["default/g", f"{namespace}/h"]
    others = gang("h", namespace, repair=repair, groups=groups if names_it else ())
    found = leaving(decided(*gang(groups=groups), *others))
    assert [key for key in found if "/h-" in key] == (
        [f"{namespace}/h-0", f"{namespace}/h-1"] if together else []
    )


def test_a_group_waits_for_the_gang_that_was_restarted_last() -> None:
    groups = ["default/g", "default/h"]
    pods = [*gang(groups=groups), *gang("h", groups=groups)]
    history = restart_plan.History({"default/h": NOW - 590}, NOW - 3600)
    assert decided(*pods, history=history) == restart_plan.Later(
        10.0, "a gang is restarted at most every 600 s"
    )


def test_mirror_pods_and_pods_that_hold_no_place_stay() -> None:
    pods = [
        *gang(count=1),
        ganged.pod("mirror", node="n1", min=3, mirror="x", repair="restart"),
        ganged.pod("waits", min=3, repair="restart"),
        ganged.pod("ended", node="n1", phase="Failed", min=3, repair="restart"),
        ganged.pod("leaves", node="n1", deleting=True, min=3, repair="restart"),
    ]
    assert leaving(decided(*pods)) == ["default/g-0"]
