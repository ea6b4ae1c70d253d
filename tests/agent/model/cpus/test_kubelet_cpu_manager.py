"""How a kubelet hands out cpus, from its configuration and its notes."""

import json

import pytest

from agent.model import state
from agent.model.cpus import kubelet_cpu_manager
from api import names

MACHINE = tuple(state.Processor(cpu, cpu % 4, 0, 0) for cpu in range(8))


def configuration(**changes):
    return kubelet_cpu_manager.configuration(json.dumps({"kubeletconfig": changes}).encode())


def notes(**entries):
    body = {"policyName": "static", "defaultCpuSet": "0,3-7", "entries": entries, "checksum": 1}
    return kubelet_cpu_manager.entries(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("policy", "scope", "expected"),
    [
        ("single-numa-node", "container", "SingleNUMANodeContainerLevel"),
        ("single-numa-node", "pod", "SingleNUMANodePodLevel"),
        ("restricted", "container", "RestrictedContainerLevel"),
        ("restricted", "pod", "RestrictedPodLevel"),
        ("best-effort", "container", "BestEffortContainerLevel"),
        ("best-effort", "pod", "BestEffortPodLevel"),
        ("best-effort", "", "BestEffortContainerLevel"),
        ("none", "pod", "None"),
        ("", "", "None"),
        ("brand-new", "pod", "None"),
    ],
)
def test_how_resources_are_aligned(policy, scope, expected):
    found = configuration(topologyManagerPolicy=policy, topologyManagerScope=scope)
    assert found.topology == expected


def known(config, entries=None, pods=(), processors=MACHINE, bound=()):
    return kubelet_cpu_manager.known(
        kubelet_cpu_manager.Told(config, entries), pods, processors, bound
    )


@pytest.mark.parametrize(
    ("changes", "expected", "problem"),
    [
        ({"reservedSystemCPUs": "0-1"}, {0, 1}, ""),
        ({"kubeReserved": {"cpu": "500m"}, "systemReserved": {"cpu": "1"}}, {0, 4}, ""),
        ({"reservedSystemCPUs": "7-8"}, set(), "not online: 8"),
        ({"reservedSystemCPUs": "x"}, set(), "reservedSystemCPUs"),
        ({}, set(), "0 milli-cores of 8 cpus"),
        ({"kubeReserved": {"cpu": "9"}}, set(), "9000 milli-cores of 8 cpus"),
    ],
    ids=["named", "an amount", "offline", "unreadable", "nothing", "too much"],
)
def test_what_a_static_kubelet_keeps(changes, expected, problem):
    found = known(configuration(cpuManagerPolicy="static", **changes), {})
    assert found.reserved == expected
    assert problem in found.problems.get(kubelet_cpu_manager.SOURCE, "")
    assert bool(found.problems) == bool(problem)


def test_what_it_handed_out(new_pod):
    # A claim that nobody granted does not make the kubelet's cpus free.
    status = {names.ANNOTATION_RESOURCE_STATUS: '{"cpuset": "5"}'}
    pods = [
        new_pod("plain", "Guaranteed"),
        new_pod("shared", "Burstable"),
        new_pod("batch", "BestEffort"),
        new_pod("placed", "Guaranteed", **status),
        new_pod("claims", "Guaranteed", **status),
    ]
    uids = ("plain", "shared", "batch", "placed", "claims", "unlisted")
    every = {uid: {"app": "1"} for uid in uids}
    entries = notes(**every | {"plain": {"a": "2", "b": "6-7"}, "empty": {}})
    config = configuration(cpuManagerPolicy="static", reservedSystemCPUs="0")
    assert known(config, entries, pods, bound={"placed"}).given == (
        state.GivenCpus("claims", frozenset({1}), "default", "name-claims"),
        state.GivenCpus("plain", frozenset({2, 6, 7}), "default", "name-plain"),
        state.GivenCpus("unlisted", frozenset({1})),
    )
    other = configuration(cpuManagerPolicy="none")
    assert known(other, entries, pods).given == ()


def test_notes_that_nobody_can_read_are_missed_where_they_matter():
    static = configuration(cpuManagerPolicy="static", reservedSystemCPUs="0")
    assert "kubeletState" in known(static).problems[kubelet_cpu_manager.SOURCE]
    assert not known(static, notes()).problems
    assert not known(configuration(cpuManagerPolicy="none")).problems


def test_a_kubelet_that_has_not_told_is_unknown_and_one_that_is_not_asked_has_no_policy():
    assert known(None) is None
    asked = kubelet_cpu_manager.Told(asked=False)
    assert kubelet_cpu_manager.known(asked, (), MACHINE) == state.KubeletCpus()


def test_options_are_passed_on():
    config = configuration(cpuManagerPolicy="none", cpuManagerPolicyOptions={"a": "true"})
    assert known(config).options == {"a": "true"}


@pytest.mark.parametrize("text", [b"", b"  \n"])
def test_an_empty_file_says_nothing(text):
    assert kubelet_cpu_manager.entries(text) == {}


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b'{"entries": {"u": {"c": "x-y"}}}', b'{"entries": {"u": "1"}}']
)
def test_half_a_file_is_named(text):
    with pytest.raises(kubelet_cpu_manager.FormatError, match="cpu manager"):
        kubelet_cpu_manager.entries(text)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b'{"kubeletconfig": {"kubeReserved": {"cpu": "many"}}}']
)
def test_an_answer_that_is_none_is_named(text):
    with pytest.raises(kubelet_cpu_manager.FormatError, match="configz"):
        kubelet_cpu_manager.configuration(text)
