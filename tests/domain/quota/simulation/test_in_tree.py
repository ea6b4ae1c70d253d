"""DefaultPreemption in a what-if: whom kube-scheduler would evict from a full node."""

import pytest

from domain.quota.simulation import fit, in_tree
from tests.domain.quota.simulation.test_what_if import a_node, pod


def proposed(nodes, pods, cpu, *, priority=10, protected=()):
    """Return the victims by node, and how many budgets their eviction violates."""
    preemptor = pod("p", "a", cpu, priority=priority)
    table = fit.Table(a_node(name, size) for name, size in nodes)
    for one in pods:
        table.take(one.node, one.asks)
    found = in_tree.proposals(table, pods, preemptor, lambda uids: {*uids} & {*protected})
    return {one.node: ([v.uid for v in one.victims], one.violations) for one in found}


@pytest.mark.parametrize(
    ("pods", "cpu", "protected", "expected"),
    [
        pytest.param([pod("l", "b", 8, "n")], 6, (), {"n": (["l"], 0)}, id="of any quota"),
        pytest.param([pod("l", "b", 8, "n")], 2, (), {}, id="a node with room needs nobody"),
        pytest.param([pod("e", "b", 8, "n", priority=10)], 6, (), {}, id="not of equal priority"),
        pytest.param([pod("l", "b", 8, "n")], 11, (), {}, id="not where it would not help"),
        pytest.param(
            [pod("low", "b", 4, "n"), pod("mid", "b", 4, "n", priority=5)],
            5, (), {"n": (["low"], 0)}, id="the most important stay",
        ),
        pytest.param(
            [pod("old", "b", 4, "n", started=1.0), pod("new", "b", 4, "n", started=2.0)],
            5, (), {"n": (["new"], 0)}, id="of equals the oldest stay",
        ),
        pytest.param(
            [pod("low", "b", 4, "n"), pod("mid", "b", 4, "n", priority=5)],
            5, ("low",), {"n": (["mid"], 0)}, id="those that a budget protects stay",
        ),
        pytest.param(
            [pod("low", "b", 4, "n"), pod("mid", "b", 4, "n", priority=5)],
            10, ("low",), {"n": (["low", "mid"], 1)}, id="protected, but needed",
        ),
    ],
)  # fmt: skip
def test_who_leaves_a_node(pods, cpu, protected, expected):
    assert proposed([("n", 10)], pods, cpu, protected=protected) == expected


def test_the_best_node_is_the_one_whose_victims_matter_least():
    def cost(*victims, violations=0):
        return in_tree.Proposal("n", victims, violations).cost

    low, mid = pod("l", "b", 1, "n", started=5.0), pod("m", "b", 1, "n", priority=5)
    late = pod("late", "b", 1, "n", started=9.0)
    ordered = [cost(late), cost(low), cost(low, late), cost(mid), cost(low, violations=1)]
    assert ordered == sorted(ordered)
