"""Room on nodes: what is counted of resources that all of them offer, and of those that few do."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.quota import placement
from domain.quota.simulation import fit

_NAMES = ("cpu", "memory", "gpu", "fpga")
AMOUNTS = st.dictionaries(st.sampled_from(_NAMES), st.integers(0, 9))


def thousands(of, count=5000):
    return {f"{of}.example.com/{at}": 1 for at in range(count)}


def table_of(offers, common=None):
    nodes = [
        fit.Node(f"n{at}", {}, (), {**offered, **(common or {})})
        for at, offered in enumerate(offers)
    ]
    return fit.Table(nodes)


@given(
    st.lists(AMOUNTS, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), AMOUNTS), max_size=4),
    AMOUNTS,
)
def test_resources_of_few_nodes_count_as_those_of_all(offers, pods, asks):
    # What each node offers is cell by cell as common as can be, or as rare.
    common, rare = table_of(offers), table_of(offers, thousands("a", 400))
    pods = [
        (node, {key: asked[key] for key in asked if key in offers[node]})
        for node, asked in pods
        if node < len(offers)
    ]
    for table in (common, rare):
        for node, asked in pods:
            table.take(f"n{node}", asked)
    untouched = rare.copy()
    for node, asked in pods[:1]:
        for table in (common, rare):
            table.give_back(f"n{node}", asked)
        untouched.copy().give_back(f"n{node}", asked)
    assert found(rare, asks) == found(common, asks)
    for node, asked in pods[:1]:
        rare.take(f"n{node}", asked)
    assert found(rare, asks) == found(untouched, asks)


def found(table, asks):
    freed = {"gpu": 1}
    return (
        table.fitting(asks, placement.NONE).tolist(),
        table.lacks(asks, placement.NONE),
        [table.fits(node.name, asks) for node in table.nodes],
        [
            table.fits(node.name, asks, freed if "gpu" in node.allocatable else {})
            for node in table.nodes
        ],
    )


def test_nothing_is_kept_for_each_node_of_what_one_offers_alone():
    offers = [{"cpu": 8000, "memory": 1 << 33} for _ in range(500)]
    offers.append({"cpu": 1000, **thousands("odd", 10_000)})
    tracemalloc.start()
    try:
        table = table_of(offers)
        changed = table.copy()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 16 << 20
    changed.take("n500", {"odd.example.com/7": 1})
    asks = {"odd.example.com/7": 1}
    assert table.place(asks, placement.NONE) == "n500"
    assert changed.place(asks, placement.NONE) == ""
    assert changed.lacks(asks, placement.NONE) == asks


class Counted(dict):
    """Amounts that count how often all of them are read."""

    reads = 0

    def items(self):
        self.reads += 1
        return super().items()


@pytest.mark.parametrize("nodes", [2, 400])
def test_what_a_long_pod_lacks_is_not_added_up_for_each_node(nodes):
    table = table_of([{"cpu": at + 1, **thousands("a", 300)} for at in range(nodes)])
    asks = Counted({"cpu": 2, **dict.fromkeys(thousands("a", 300), 5)})
    assert len(table.lacks(asks, placement.NONE)) == 300
    assert asks.reads <= 2
