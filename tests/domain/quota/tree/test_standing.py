"""What quotas borrow, what they lend, and who holds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from domain.quota.tree import standing
from tests.domain.quota.forests import a_forest, a_pod, a_quota


def team(name, minimum, most, **other):
    return a_quota(name, {"cpu": minimum}, {"cpu": most}, **other)


def using(name, cpu, waits=0):
    found = [a_pod(f"{name}-runs", name, {"cpu": cpu}, assigned=True)]
    return [*found, a_pod(f"{name}-waits", name, {"cpu": waits})] if waits else found


@pytest.mark.parametrize(
    ("teams", "pods", "total", "lent"),
    [
        pytest.param(
            [team("a", 50, 100), team("b", 50, 100)],
            [("a", 20, 0), ("b", 80, 0)], 100, {"a": {"b": 30}, "b": {}},
            id="an idle minimum is used by a sibling",
        ),
        pytest.param(
            [team("a", 50, 100), team("b", 50, 100)],
            [("a", 20, 0), ("b", 80, 0)], 120, {"a": {"b": 10}, "b": {}},
            id="what no minimum reserves is borrowed first",
        ),
        pytest.param(
            [team("a", 40, 100), team("b", 20, 100), team("c", 40, 100)],
            [("a", 10, 0), ("b", 10, 0), ("c", 60, 0)], 100, {"a": {"c": 15}, "b": {"c": 5}},
            id="several lend in proportion to what is idle",
        ),
        pytest.param(
            [team("a", 60, 100), team("b", 20, 100), team("c", 20, 100)],
            [("a", 30, 0), ("b", 40, 0), ("c", 30, 0)], 100, {"a": {"b": 20, "c": 10}},
            id="several hold what one lends",
        ),
        pytest.param(
            [
                team("p", 50, 100, is_parent=True), team("q", 50, 100),
                team("p1", 30, 100, parent="p"), team("p2", 20, 100, parent="p"),
            ],
            [("p1", 10, 0), ("p2", 25, 0), ("q", 60, 0)], 100,
            {"p": {"q": 10}, "p1": {"p2": 5, "q": 10}, "p2": {}},
            id="what a parent lends is lent by its child whose minimum is idle",
        ),
    ],
)  # fmt: skip
def test_lenders_and_holders(teams, pods, total, lent):
    forest = a_forest(teams, [p for one in pods for p in using(*one)], {"cpu": total})
    found = standing.standings(forest)
    for name, holders in lent.items():
        got = {holder: amounts["cpu"] for holder, amounts in found[name].holders.items()}
        assert got == holders, name
        assert found[name].lent["cpu"] == sum(holders.values())


def test_figures_of_one_quota():
    forest = a_forest(
        [team("a", 50, 100, hard={"cpu": 90}), team("b", 50, 100)],
        [*using("a", 70, 40), *using("b", 20)],
        {"cpu": 100},
    )
    found = standing.standings(forest)["a"]
    assert (found.used["cpu"], found.borrowed["cpu"], found.waiting["cpu"]) == (70, 20, 40)
    assert (found.guaranteed["cpu"], found.cap["cpu"], found.entitled["cpu"]) == (50, 90, 80)


def test_a_parent_waits_for_the_pods_of_its_children():
    forest = a_forest(
        [team("p", 10, 50, is_parent=True), team("c", 5, 50, parent="p")],
        using("c", 1, 9),
        {"cpu": 100},
    )
    assert standing.standings(forest)["p"].waiting["cpu"] == 9


def test_the_default_quota_lends_and_borrows_nothing():
    forest = a_forest([], [a_pod("p", "", {"cpu": 5}, assigned=True)], {"cpu": 100})
    found = standing.standings(forest)[names.DEFAULT_QUOTA]
    assert dict(found.holders) == {}
    assert not any(found.lent.values())


AMOUNTS = st.integers(0, 60)


@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS, st.booleans()), min_size=1, max_size=6),
    st.integers(0, 200),
)
def test_nobody_lends_more_than_is_idle_or_borrowed(teams, total):
    quotas, pods = [], []
    for number, (minimum, used, below) in enumerate(teams):
        parent = {"parent": "t0"} if below and number else {}
        quotas.append(team(f"t{number}", minimum, 100, is_parent=not number, **parent))
        pods += using(f"t{number}", used)
    found = standing.standings(a_forest(quotas, pods, {"cpu": total}))
    for name, one in found.items():
        idle = max(0, one.guaranteed.get("cpu", 0) - one.used.get("cpu", 0))
        assert 0 <= one.lent.get("cpu", 0) <= idle, name
        assert name not in one.holders
        for holder, amounts in one.holders.items():
            assert 0 < amounts["cpu"] <= found[holder].borrowed["cpu"]


@given(st.integers(0, 1000), st.dictionaries(st.text(max_size=2), st.integers(0, 50), max_size=5))
def test_a_split_is_whole_and_leaves_nothing(amount, weights):
    parts = standing.split(amount, weights)
    assert sum(parts.values()) == (amount if any(weights.values()) else 0)
    assert all(parts[name] == 0 for name, weight in weights.items() if not weight)
