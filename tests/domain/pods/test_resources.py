"""What pods ask for, by the rule of Kubernetes."""

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from api import names
from api.kubernetes import core
from domain.pods import resources
from tests import processor_time


def _pod(**spec):
    return msgspec.convert({"spec": spec}, core.Pod)


def _container(cpu, side="requests", **more):
    return {"name": "c", "resources": {side: {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param(
            {"containers": [_container("1"), _container("500m")]}, {"cpu": 1500}, id="sum"
        ),
        pytest.param(
            {"containers": [_container("1")], "initContainers": [_container("3")]},
            {"cpu": 3000},
            id="start needs more",
        ),
        pytest.param(
            {
                "containers": [_container("2")],
                "initContainers": [
                    _container("1", restartPolicy="Always"),
                    _container("1500m"),
                ],
            },
            {"cpu": 3000},
            id="sidecars run beside both",
        ),
        pytest.param(
            {
                "containers": [_container("1")],
                "initContainers": [
                    _container("4"),
                    _container("2", restartPolicy="Always"),
                ],
            },
            {"cpu": 4000},
            id="an earlier start is without later sidecars",
        ),
        pytest.param(
            {"containers": [_container("1")], "overhead": {"cpu": "100m", "memory": "64Mi"}},
            {"cpu": 1100, "memory": 64 << 20},
            id="overhead",
        ),
        pytest.param(
            {
                "containers": [_container("1")],
                "resources": {"requests": {"cpu": "5"}},
                "overhead": {"cpu": "1"},
            },
            {"cpu": 6000},
            id="pod level wins",
        ),
    ],
)
def test_requests(spec, expected):
    assert resources.pod_requests(_pod(**spec)) == expected


LIMITED, SIDE = _container("1", "limits"), {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "limited"),
    [
        pytest.param({"containers": [LIMITED, LIMITED]}, True, id="every container"),
        pytest.param({"containers": [LIMITED, _container("1")]}, False, id="one without"),
        pytest.param({"containers": [_container("0", "limits")]}, False, id="a limit of nothing"),
        pytest.param(
            {"containers": [LIMITED], "initContainers": [_container("1", **SIDE)]},
            False, id="a sidecar without",
        ),
        pytest.param(
            {"containers": [LIMITED], "initContainers": [_container("1")]},
            False, id="an init container without",
        ),
        pytest.param(
            {"containers": [LIMITED], "initContainers": [{**LIMITED, **SIDE}, _container("1")]},
            True, id="an init container behind a sidecar that has one",
        ),
        pytest.param(
            {"containers": [LIMITED], "initContainers": [_container("1"), {**LIMITED, **SIDE}]},
            False, id="an init container before the sidecar",
        ),
        pytest.param(
            {"containers": [_container("1")], "resources": {"limits": {"cpu": "2"}}},
            True, id="the pod itself",
        ),
    ],
)  # fmt: skip
def test_a_pod_is_limited_as_kubelets_do_it(spec, limited):
    """ResourceConfigForPod of the kubelet looks at each container, init containers as well."""
    assert resources.is_limited(_pod(**spec).spec, "cpu") is limited
    assert not resources.is_limited(_pod(**spec).spec, "memory")


def test_sidecars_last_as_long_as_their_pod():
    inits = [{"name": "once"}, {"name": "side", **SIDE}]
    found = resources.lasting(_pod(containers=[{"name": "app"}], initContainers=inits).spec)
    assert [one.name for one in found] == ["app", "side"]


def test_overhead_counts_towards_limits_only_where_there_is_one():
    pod = _pod(containers=[_container("2", "limits")], overhead={"cpu": "100m", "memory": "1Gi"})
    assert resources.pod_limits(pod) == {"cpu": 2100}


def test_thousands_of_init_containers_with_a_resource_each_take_no_longer_than_others():
    asked = [
        {"name": f"i{n}", "resources": {"requests": {f"example.com/r{n}": "1"}}}
        | ({"restartPolicy": "Always"} if n % 2 else {})
        for n in range(10_000)
    ]
    pod = _pod(initContainers=asked)
    with processor_time.below(0.3):
        found = resources.pod_requests(pod)
    assert found == {f"example.com/r{n}": 1 for n in range(10_000)}
    with processor_time.below(0.3):
        resources.sequential_requests(pod)


def test_node_offers_its_allocatable():
    node = msgspec.convert({"status": {"allocatable": {"cpu": "2", "memory": "1Ki"}}}, core.Node)
    assert resources.node_allocatable(node) == {"cpu": 2000, "memory": 1024}


_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "x"]), st.integers(0, 1 << 60))


@hypothesis.given(left=_AMOUNTS, right=_AMOUNTS)
def test_adding_and_subtracting_cancel_out(left, right):
    there = resources.subtract(resources.add(left, right), right)
    assert {k: v for k, v in there.items() if v} == {k: v for k, v in left.items() if v}
    assert resources.fits(left, resources.highest(left, right))
    assert resources.fits(right, resources.highest(left, right))


@hypothesis.given(left=_AMOUNTS, several=st.lists(_AMOUNTS, max_size=3))
def test_several_are_subtracted_as_one_after_the_other(left, several):
    left_over = left
    for one in several:
        left_over = resources.subtract(left_over, one)
    assert resources.less(left, [tuple(one.items()) for one in several]) == left_over


@pytest.mark.parametrize(
    ("asked", "free", "fits"),
    [
        pytest.param({"cpu": 1}, {"cpu": 1}, True, id="exactly"),
        pytest.param({"cpu": 2}, {"cpu": 1}, False, id="too much"),
        pytest.param({"x": 1}, {}, False, id="unknown resource"),
        pytest.param({"x": 0}, {}, True, id="zero asks nothing"),
    ],
)
def test_fits(asked, free, fits):
    assert resources.fits(asked, free) is fits


_AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.from_regex(r"[0-9]{1,4}(m|Ki|Gi)?", fullmatch=True),
)
_CONTAINERS = st.lists(
    st.fixed_dictionaries({"requests": _AMOUNTS, "limits": _AMOUNTS}).map(
        lambda both: {"resources": both}
    ),
    max_size=3,
)


@hypothesis.given(_CONTAINERS)
def test_an_init_container_that_asks_for_nothing_changes_nothing(containers):
    plain = _pod(containers=containers)
    zero = {"resources": {"requests": {"cpu": "0", "memory": "0"}}}
    for init in ({}, zero):
        other = _pod(containers=containers, initContainers=[init])
        assert _positive(resources.pod_requests(other)) == _positive(resources.pod_requests(plain))
        assert _positive(resources.pod_limits(other)) == _positive(resources.pod_limits(plain))
    other = _pod(containers=containers, initContainers=[zero])
    for count in (resources.nonzero_requests, resources.sequential_requests):
        assert _positive(count(other)) == _positive(count(plain))


def _positive(amounts):
    return {name: value for name, value in amounts.items() if value}


@pytest.mark.parametrize(("old", "new"), names.DEPRECATED_RESOURCES.items())
def test_deprecated_names_are_read_as_present_ones(old, new):
    def amounts(name):
        asked = {"resources": {"requests": {name: "2", "cpu": "1"}, "limits": {name: "3"}}}
        pod = _pod(containers=[asked, asked], initContainers=[asked], overhead={name: "1"})
        node = msgspec.convert({"status": {"allocatable": {name: "8"}}}, core.Node)
        return (
            resources.pod_requests(pod),
            resources.pod_limits(pod),
            resources.node_allocatable(node),
        )

    assert amounts(old) == amounts(new)
    assert amounts(old)[0][new] == 5


def test_a_resource_under_both_names_counts_once():
    both = {"kubernetes.io/gpu": "100", "koordinator.sh/gpu": "50"}
    pod = _pod(containers=[{"resources": {"requests": both}}])
    assert resources.pod_requests(pod) == {"koordinator.sh/gpu": 50}
