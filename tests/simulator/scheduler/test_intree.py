import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.scheduler import intree


def refused(pod, node, *nominated):
    found = intree.check(pod, node, nominated)
    return None if found is None else (found.plugin, found.reasons, found.resolvable)


def test_an_empty_node_takes_what_fits(pod_info, node_info):
    assert refused(pod_info(requests={"cpu": "4", "memory": "8Gi"}), node_info()) is None


@pytest.mark.parametrize(
    ("requests", "reasons", "resolvable"),
    [
        pytest.param({"cpu": "2"}, ("Insufficient cpu",), True, id="cpu in use"),
        pytest.param({"cpu": "5"}, ("Insufficient cpu",), False, id="more cpu than there is"),
        pytest.param(
            {"cpu": "2", "memory": "8Gi"},
            ("Insufficient cpu", "Insufficient memory"),
            True,
            id="two reasons",
        ),
        pytest.param(
            {"kubernetes.io/batch-cpu": "500"},
            ("Insufficient kubernetes.io/batch-cpu",),
            True,
            id="extended",
        ),
        pytest.param(
            {"example.com/gpu": "1"}, ("Insufficient example.com/gpu",), False, id="unknown"
        ),
    ],
)
def test_missing_amounts_are_named(pod_info, node_info, requests, reasons, resolvable):
    other = pod_info("y", requests={"cpu": "3", "memory": "1Gi", "kubernetes.io/batch-cpu": "600"})
    node = node_info(other, **{"kubernetes.io/batch-cpu": "1000"})
    expected = ("NodeResourcesFit", reasons, resolvable)
    assert refused(pod_info(requests=requests), node) == expected


def test_a_node_takes_only_so_many_pods(pod_info, node_info):
    node = node_info(pod_info("y"), pods="1")
    assert refused(pod_info(), node) == ("NodeResourcesFit", ("Too many pods",), True)


def test_promised_room_counts_unless_it_is_ones_own(pod_info, node_info):
    promised = pod_info("y", requests={"cpu": "3"})
    pod = pod_info(requests={"cpu": "2"})
    assert refused(pod, node_info(), promised)[1] == ("Insufficient cpu",)
    assert refused(pod, node_info(), pod) is None
    assert refused(pod_info(requests={"cpu": "1"}), node_info(promised), promised) is None


TAINT = {"key": "team", "value": "data", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param(None, False, id="none"),
        pytest.param({"key": "team", "value": "data"}, True, id="equal, any effect"),
        pytest.param({"key": "team", "value": "web"}, False, id="another value"),
        pytest.param({"key": "team", "operator": "Exists"}, True, id="exists"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": "team", "value": "data", "effect": "NoExecute"}, False, id="effect"),
        pytest.param({"value": "data"}, False, id="no key"),
    ],
)
def test_taints_need_tolerations(pod_info, node_info, toleration, fits):
    pod = pod_info(tolerations=[toleration] if toleration else [])
    found = refused(pod, node_info(taints=[TAINT]))
    assert (found is None) is fits
    if not fits:
        assert found == ("TaintToleration", ("node(s) had untolerated taint(s)",), False)


def test_a_preference_is_no_refusal(pod_info, node_info):
    taint = {"key": "team", "effect": "PreferNoSchedule"}
    assert refused(pod_info(), node_info(taints=[taint])) is None


def test_a_cordoned_node_takes_only_who_tolerates_that(pod_info, node_info):
    node = node_info(unschedulable=True)
    assert refused(pod_info(), node)[0] == "NodeUnschedulable"
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert refused(pod_info(tolerations=[toleration]), node) is None


def affinity(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"nodeSelector": {"zone": "a"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"zone": "b"}}, False, id="other value"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, False, id="missing label"),
        pytest.param(
            {"affinity": affinity({"matchExpressions": [expression("zone", "In", "a", "b")]})},
            True,
            id="in",
        ),
        pytest.param(
            {"affinity": affinity({"matchExpressions": [expression("zone", "NotIn", "a")]})},
            False,
            id="not in",
        ),
        pytest.param(
            {
                "affinity": affinity(
                    {"matchExpressions": [expression("zone", "In", "b")]},
                    {"matchExpressions": [expression("zone", "Exists")]},
                )
            },
            True,
            id="second term",
        ),
        pytest.param(
            {"affinity": affinity({"matchFields": [expression("metadata.name", "In", "n")]})},
            True,
            id="name",
        ),
        pytest.param(
            {"affinity": affinity({"matchFields": [expression("metadata.name", "In", "m")]})},
            False,
            id="other name",
        ),
    ],
)
def test_selector_and_affinity_narrow(pod_info, node_info, spec, fits):
    found = refused(pod_info(**spec), node_info(labels={"zone": "a"}))
    assert (found is None) is fits
    assert fits or found[0] == "NodeAffinity"


def port(number, address="", protocol="TCP"):
    ports = [{"hostPort": number, "hostIP": address, "protocol": protocol}]
    return [{"name": "main", "ports": ports}]


@pytest.mark.parametrize(
    ("mine", "fits"),
    [
        pytest.param(port(80), False, id="same"),
        pytest.param(port(81), True, id="other port"),
        pytest.param(port(80, protocol="UDP"), True, id="other protocol"),
        pytest.param(port(80, "10.0.0.1"), False, id="one address of all"),
    ],
)
def test_host_ports_clash(pod_info, node_info, mine, fits):
    node = node_info(pod_info("y", containers=port(80)))
    found = refused(pod_info(containers=mine), node)
    assert (found is None) is fits
    assert fits or found[0] == "NodePorts"


def container(cpu, **more):
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, 1500, id="sum"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("3")]}, 3000, id="init"
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("500m", restartPolicy="Always"), container("1")],
            },
            1500,
            id="sidecar",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("500m", restartPolicy="Always"), container("2")],
            },
            2500,
            id="init beside sidecar",
        ),
        pytest.param(
            {"containers": [container("1")], "overhead": {"cpu": "100m"}}, 1100, id="overhead"
        ),
    ],
)
def test_requests_of_a_pod(pod_info, spec, expected):
    assert pod_info(**spec).requests == {"cpu": expected}


def test_the_emptier_node_scores_higher(pod_info, node_info):
    pod = pod_info(requests={"cpu": "1", "memory": "1Gi"})
    busy = node_info(pod_info("y", requests={"cpu": "2", "memory": "4Gi"}))
    assert intree.score(pod, node_info()) > intree.score(pod, busy)


def test_a_score_is_the_mean_of_free_shares(pod_info, node_info):
    pod = pod_info(requests={"cpu": "1", "memory": "4Gi"})
    assert intree.score(pod, node_info()) == (75 + 50) // 2


def test_a_node_without_figures_scores_nothing(pod_info, node_info):
    assert intree.score(pod_info(), node_info(cpu="0", memory="0")) == 0


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [(0, 0), (50, 50), (99, 99), (100, 100), (250, 120), (500, 230), (1000, 420), (2000, 680),
     (3000, 780), (4000, 720), (5000, 500), (6000, 300), (10000, 500), (15000, 750)],
)  # fmt: skip
def test_the_sample_is_that_of_the_stock_scheduler(nodes, expected):
    assert intree.sample_size(nodes) == expected


@given(st.integers(0, 20000), st.integers(1, 100))
def test_a_sample_is_never_more_than_all(nodes, percentage):
    assert min(nodes, 100) <= intree.sample_size(nodes, percentage) <= nodes
