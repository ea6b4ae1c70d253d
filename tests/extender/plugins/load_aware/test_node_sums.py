"""Sums of load that are kept in step are those that are computed from all pods of a node."""

from hypothesis import given
from hypothesis import strategies as st

from domain.usage import load
from extender.plugins.load_aware import node_sums

WIDTH = 2
VECTORS = st.tuples(st.integers(0, 9), st.integers(0, 9))
KEYS = [f"default/p{number}" for number in range(9)]
REPORTS = st.builds(
    load.Report,
    updated_at=st.none() | st.floats(0, 100),
    interval=st.just(60.0),
    usage=st.none() | VECTORS,
    system=VECTORS,
    windows=st.just(()),
    pods=st.dictionaries(
        st.sampled_from(KEYS), st.tuples(st.booleans(), st.none() | VECTORS), max_size=6
    ),
)
PODS = st.builds(
    load.Resident,
    st.sampled_from(KEYS),
    VECTORS,
    st.booleans(),
    st.floats(0, 200),
    st.none() | st.floats(0, 200),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("come", "go", "become", "report", "other")), st.integers(0, 8), PODS
    ),
    max_size=25,
)


@given(STEPS, st.lists(REPORTS, min_size=2, max_size=3), st.booleans())
def test_they_are_those_of_all_pods_after_any_changes(steps, reports, include_system):
    kept = node_sums.NodeSums(lambda pod: pod, WIDTH, include_system=include_system)
    held, report = [], reports[0]
    for kind, number, pod in steps:
        others = [one for place, one in enumerate(held) if place != number]
        match kind:
            case "come":
                held = [*held, pod]
            case "go":
                held = others
            case "become":
                held = [*others, pod]
            case "report":
                report = reports[number % len(reports)]
            case _:
                # Another state, such as a fork, asks about the same node between two changes.
                kept.of("n0", report, (*held[number:], pod))
        wanted = load.accumulate(report, held, WIDTH, include_system=include_system)
        assert kept.of("n0", report, tuple(held)) == wanted


def test_a_pod_more_is_all_that_is_summed():
    asked = []

    def resident(pod):
        asked.append(pod.key)
        return pod

    report = load.Report(None, 60.0, (0, 0), (0, 0), (), {})
    pods = tuple(load.Resident(key, (1, 1), True, 0.0) for key in KEYS)
    kept = node_sums.NodeSums(resident, WIDTH, include_system=False)
    kept.of("n0", report, pods[:-1])
    asked.clear()
    assert kept.of("n0", report, pods).node_estimated == (9, 9)
    assert asked == [KEYS[-1]]
    assert kept.of("n0", report, pods[1:]).node_estimated == (8, 8)
    assert asked == [KEYS[-1], KEYS[0]]


def test_two_states_that_differ_each_go_on_from_their_own_pods():
    asked = []

    def resident(pod):
        asked.append(pod.key)
        return pod

    report = load.Report(None, 60.0, (0, 0), (0, 0), (), {})
    pods = tuple(load.Resident(key, (1, 1), True, 0.0) for key in KEYS)
    kept = node_sums.NodeSums(resident, WIDTH, include_system=False)
    one, other = pods[:4], pods[4:8]
    assert kept.of("n0", report, one).node_estimated == (4, 4)
    assert kept.of("n0", report, other).node_estimated == (4, 4)
    asked.clear()
    for state in (one, other, one[1:], other[1:]):
        assert kept.of("n0", report, state).node_estimated == (len(state),) * WIDTH
    assert asked == [KEYS[0], KEYS[4]]
