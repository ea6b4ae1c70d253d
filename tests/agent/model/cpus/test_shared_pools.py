"""Which cpus are shared: never those that somebody has alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as any_of

from agent.model import state
from agent.model.cpus import shared_pools
from tests import draws

MACHINE = tuple(state.Processor(cpu, cpu // 2, cpu // 4, cpu // 4) for cpu in range(8))
EVERY = frozenset(range(8))


def claims(**given):
    return shared_pools.Claims(**{name: frozenset(cpus) for name, cpus in given.items()})


def told(found):
    return [(pool.socket, pool.node, sorted(pool.cpus)) for pool in found]


@pytest.mark.parametrize(
    ("claimed", "online", "best_effort"),
    [
        (claims(), [(0, 0, [0, 1, 2, 3]), (1, 1, [4, 5, 6, 7])], None),
        (claims(pods={0, 1}), [(0, 0, [2, 3]), (1, 1, [4, 5, 6, 7])],
         [(0, 0, [0, 1, 2, 3]), (1, 1, [4, 5, 6, 7])]),
        (claims(pods={0, 1}, exclusive={0, 1}), [(0, 0, [2, 3]), (1, 1, [4, 5, 6, 7])], None),
        (claims(kubelet={4}), [(0, 0, [0, 1, 2, 3]), (1, 1, [5, 6, 7])], None),
        (claims(pods={4, 5, 6, 7}), [(0, 0, [0, 1, 2, 3])],
         [(0, 0, [0, 1, 2, 3]), (1, 1, [4, 5, 6, 7])]),
        (claims(node={0, 1, 2, 3}), [(0, 0, []), (1, 1, [4, 5, 6, 7])], None),
        (claims(node={0}, kubelet={1}, pods={2}, exclusive={2}),
         [(0, 0, [3]), (1, 1, [4, 5, 6, 7])], None),
        (claims(pods={99}), [(0, 0, [0, 1, 2, 3]), (1, 1, [4, 5, 6, 7])], None),
    ],
    ids=[
        "nobody has any", "of a pod", "of an exclusive pod", "of the kubelet",
        "a NUMA node of a pod", "a NUMA node kept back", "all of them", "no such cpu",
    ],
)  # fmt: skip
def test_pools(claimed, online, best_effort):
    found = shared_pools.shared(MACHINE, claimed)
    assert told(found.online) == online
    assert told(found.best_effort) == (online if best_effort is None else best_effort)


SOME = any_of.frozensets(any_of.integers(0, 9))


@settings(max_examples=draws.at_least(30), deadline=None)
@given(SOME, SOME, SOME, SOME)
def test_pools_and_claims_make_up_the_machine(kubelet, pods, exclusive, node):
    claimed = shared_pools.Claims(kubelet, pods | exclusive, exclusive, node)
    found = shared_pools.shared(MACHINE, claimed)
    online, batch = found.of(), found.of(batch=True)
    assert online == EVERY - kubelet - pods - exclusive - node
    assert batch == EVERY - kubelet - exclusive - node
    assert online <= batch
    for part in (found.online, found.best_effort):
        assert sum(len(pool.cpus) for pool in part) == len(shared_pools.joined(part))
        assert [(p.socket, p.node) for p in part] == sorted({(p.socket, p.node) for p in part})
        assert found.of([pool.node for pool in part]) == online


def test_the_claims_of_pods(placed):
    pods = (
        placed("a", quality="LSE", cpus=frozenset({0, 1})),
        placed("b", quality="LSR", cpus=frozenset({2, 3})),
        placed("c"),
    )
    kept = state.Reserved(
        cpus=frozenset({4}), system_cpus=frozenset({5}), kubelet_cpus=frozenset({6})
    )
    found = shared_pools.claims(pods, kept)
    assert found == claims(kubelet={6}, pods={0, 1, 2, 3}, exclusive={0, 1}, node={4, 5})
