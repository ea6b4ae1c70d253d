"""What a node lends: figures of the documents, and what is written when."""

import msgspec
import pytest

from api import names
from api.koordinator.metadata import node_payloads
from api.kubernetes import core
from api.wire import quantity
from domain.devices.requests import accelerators
from domain.lending import colocation
from manager.cluster_settings import strategy
from manager.model import projections
from manager.overcommit import breakdown, calculation, node_status
from manager.overcommit import plan as node_resource
from manager.reconcile import actions

GIB = 1 << 30
NOW = 1_000_000.0


@pytest.fixture
def node() -> projections.Node:
    return projections.node(
        msgspec.convert(
            {
                "metadata": {"name": "n1", "uid": "u1"},
                "status": {
                    "capacity": {"cpu": "64", "memory": "256Gi"},
                    "allocatable": {"cpu": "62", "memory": "248Gi"},
                },
            },
            core.Node,
        )
    )


REPORT = projections.Report(NOW, colocation.Amount(3_000, 12 * GIB), {})
DEMAND = colocation.Demand(
    requested=colocation.Amount(40_000, 120 * GIB),
    used=colocation.Amount(20_000, 90 * GIB),
    peak=colocation.Amount(44_000, 130 * GIB),
    firm=colocation.Amount(42_000, 122 * GIB),
)


def rules(**changed: object) -> strategy.Strategy:
    return strategy.read({**strategy.DEFAULT, "enable": True, **changed})


def test_worked_example(node: projections.Node) -> None:
    found = node_resource.breakdown(seen(node))
    assert [found.of(name).calculated for name in names.BATCH_RESOURCES] == list(LENT)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [pytest.param(100_000, 8_400, id="8.4-cores"), pytest.param(80_000, 14_400, id="14.4-cores")],
)
def test_overcommit_by_ratio(node: projections.Node, requested: int, expected: int) -> None:
    big = msgspec.structs.replace(
        node,
        capacity=colocation.Amount(130_000, 256 * GIB),
        allocatable=colocation.Amount(128_000, 248 * GIB),
    )
    firm = colocation.Demand(firm=colocation.Amount(requested, 0))
    policy = rules(cpuCalculatePolicy="overcommitRatio", overcommitPercent=30)
    found = node_resource.breakdown(seen(big, demand=firm, rules=policy)).of(names.BATCH_CPU)
    assert (found.calculated, found.percent) == (expected, 30)
    assert found.terms == (
        breakdown.Term("allocatable", 128_000),
        breakdown.Term("requested", -requested),
    )


def seen(node: projections.Node, **changed: object) -> calculation.Seen:
    given = {
        "node": node,
        "report": REPORT,
        "demand": DEMAND,
        "rules": rules(),
        "enabled": True,
        "now": NOW,
        "since_write": None,
    }
    return calculation.Seen(**{**given, **changed})


def publishing(node: projections.Node, cpu: int, memory: int) -> projections.Node:
    """The node as it is after this amount was published on it."""
    offer = node_status.batch({names.BATCH_CPU: cpu, names.BATCH_MEMORY: memory}, {}, "")
    annotations = {
        names.ANNOTATION_ORIGIN_ALLOCATABLE: offer.origin,
        names.ANNOTATION_CPU_NORMALIZATION: "1.00",
    }
    values = {**offer.values, **dict.fromkeys(names.MID_RESOURCES, 0)}
    return msgspec.structs.replace(node, published=(values, values), annotations=annotations)


def test_first_offer_is_written_and_told_with_its_figures(node: projections.Node) -> None:
    planned = node_resource.planned(seen(node))
    write, told = planned.steps
    assert isinstance(write, actions.PatchStatus)
    assert write.body["status"]["allocatable"][names.BATCH_CPU] == "15400"
    assert write.body["status"]["capacity"] == write.body["status"]["allocatable"]
    assert isinstance(told, actions.Tell)
    assert told.reason == node_resource.STARTED
    assert "15.4 cores (64 capacity - 25.6 margin - 3 system - 20 used)" in planned.message
    assert "64.4 GiB (256.0 capacity - 89.6 margin - 12.0 system - 90.0 used)" in planned.message


def test_sentence_of_overcommit_by_ratio(node: projections.Node) -> None:
    policy = rules(cpuCalculatePolicy="overcommitRatio", overcommitPercent=30)
    message = node_resource.planned(seen(node, rules=policy)).message
    assert "6 cores (30 % of 62 allocatable - 42 requested)" in message


def test_sentence_of_a_cap(node: projections.Node) -> None:
    message = node_resource.planned(seen(node, rules=rules(batchCPUThresholdPercent=10))).message
    assert "6.4 cores (the cap of 6.4)" in message


REFRESH = colocation.refresh_after(300, "n1")
LENT = (15_400, int(64.4 * GIB) + 1)


@pytest.mark.parametrize(
    ("published", "since", "writes"),
    [
        pytest.param(LENT, 10.0, False, id="same"),
        pytest.param(LENT, None, False, id="same-after-a-restart"),
        pytest.param((15_000, LENT[1]), 10.0, False, id="small-change-just-written"),
        pytest.param((15_000, LENT[1]), REFRESH - 1, False, id="small-change-is-nearly-due"),
        pytest.param((15_000, LENT[1]), REFRESH, True, id="small-change-is-due"),
        pytest.param((15_000, LENT[1]), None, True, id="small-change-after-a-restart"),
        pytest.param((10_000, LENT[1]), 10.0, True, id="large-change"),
    ],
)
def test_when_it_is_written(node: projections.Node, published, since, writes) -> None:
    planned = node_resource.planned(seen(publishing(node, *published), since_write=since))
    assert bool(planned.steps) is writes
    small = not writes and published != LENT
    assert ("too small" in planned.message) is small
    # The report is too old a second after 15 minutes; a small change is due after nearly five.
    assert planned.again_in == (pytest.approx(REFRESH - since) if small else 901.0)


def test_one_side_alone_is_news(node: projections.Node) -> None:
    half = publishing(node, *LENT)
    half = msgspec.structs.replace(half, published=({}, half.published[1]))
    (write,) = node_resource.planned(seen(half, since_write=1.0)).steps
    assert isinstance(write, actions.PatchStatus)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param({"enabled": False}, "colocation is off", id="off"),
        pytest.param({"report": None}, "has not reported yet", id="no-metric"),
        pytest.param(
            {"report": projections.Report(None, colocation.NOTHING, {})},
            "not reported",
            id="no-report",
        ),
        pytest.param({"now": NOW + 901}, "last report is 15 minutes old", id="old-report"),
        pytest.param(
            {"report": projections.Report(NOW, colocation.NOTHING, {}, measured=False)},
            "says nothing about the node",
            id="report-without-figures",
        ),
    ],
)
def test_withdrawn(node: projections.Node, changed, why) -> None:
    nominal = msgspec.structs.replace(
        node, annotations={names.ANNOTATION_CPU_NORMALIZATION: "1.00"}
    )
    assert node_resource.planned(seen(nominal, **changed)).steps == ()
    planned = node_resource.planned(seen(publishing(node, *LENT), **changed))
    write, told = planned.steps
    assert why in planned.message
    assert isinstance(write, actions.PatchStatus)
    gone = dict.fromkeys((*names.BATCH_RESOURCES, *names.MID_RESOURCES))
    assert write.body["status"] == {"capacity": gone, "allocatable": gone}
    assert isinstance(told, actions.Tell)
    assert told.warning is changed.get("enabled", True)


def test_exactly_at_the_limit_a_report_still_counts(node: projections.Node) -> None:
    planned = node_resource.planned(seen(publishing(node, *LENT), now=NOW + 900))
    assert planned.steps == ()
    assert planned.again_in == 1.0


def test_a_node_without_figures_waits(node: projections.Node) -> None:
    silent = msgspec.structs.replace(node, capacity=None)
    assert node_resource.planned(seen(silent)) == actions.Plan(
        "the node has not said yet what it has"
    )


def test_unreadable_allocations_are_told(node: projections.Node) -> None:
    broken = msgspec.structs.replace(node, annotations={names.ANNOTATION_THIRD_PARTY: "[]"})
    *_, told = node_resource.planned(seen(broken)).steps
    assert isinstance(told, actions.Tell)
    assert told.reason == node_resource.UNREADABLE


@pytest.mark.parametrize(
    ("labels", "annotations", "said"),
    [
        pytest.param({}, {names.ANNOTATION_COLOCATION_STRATEGY: "[]"}, "colocation-strategy"),
        pytest.param({names.LABEL_CPU_RECLAIM_RATIO: "most"}, {}, "'most' is no ratio"),
        pytest.param({names.LABEL_CPU_RECLAIM_RATIO: "-1"}, {}, "'-1' is no ratio"),
    ],
)
def test_settings_of_a_node_that_cannot_be_read_are_told(
    node: projections.Node, labels: dict[str, str], annotations: dict[str, str], said: str
) -> None:
    odd = msgspec.structs.replace(node, labels=labels, annotations=annotations)
    *_, told = node_resource.planned(seen(odd)).steps
    assert isinstance(told, actions.Tell)
    assert (told.reason, told.warning) == (node_resource.UNREADABLE, True)
    assert said in told.note


def test_settings_of_a_node_that_can_be_read_are_no_news(node: projections.Node) -> None:
    labels = {names.LABEL_CPU_RECLAIM_RATIO: "0.5"}
    annotations = {names.ANNOTATION_COLOCATION_STRATEGY: '{"enable": true}'}
    own = msgspec.structs.replace(node, labels=labels, annotations=annotations)
    assert node_resource.UNREADABLE not in [
        step.reason
        for step in node_resource.planned(seen(own)).steps
        if isinstance(step, actions.Tell)
    ]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        pytest.param("1.5", 15, id="faster"),
        pytest.param("0.5", 10, id="slower-counts-as-nominal"),
        pytest.param("fast", 10, id="unreadable"),
        pytest.param("nan", 10, id="no-number"),
        pytest.param("inf", 10, id="boundless"),
    ],
)
def test_faster_cpu_counts_for_more(ratio: str, expected: int) -> None:
    assert node_status.batch({names.BATCH_CPU: 10}, {}, ratio).values[names.BATCH_CPU] == expected


RATIOS = {
    names.ANNOTATION_CPU_NORMALIZATION: "1.50",
    names.ANNOTATION_AMPLIFICATION: '{"cpu":1.50}',
}


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        pytest.param(
            {"normalization": None, "amplification": None},
            [node_resource.NOT_NORMALIZED, node_resource.NOT_AMPLIFIED],
            id="settings-that-nobody-could-ever-read",
        ),
        pytest.param(
            {
                "normalization": strategy.Normalization(enable=True, default=9.0, models={}),
                "processors": node_payloads.CpuBasicInfo(cpu_model="x"),
                "amplification": strategy.Amplification(enable=True, ratios={"memory": 0.5}),
            },
            [node_resource.NOT_NORMALIZED, node_resource.NOT_AMPLIFIED],
            id="ratios-out-of-range",
        ),
    ],
)
def test_what_cannot_be_worked_out_stays_as_it_is(node: projections.Node, changed, reasons) -> None:
    """A faster node goes on lending more, and an amplified one offering more; people are told."""
    there = msgspec.structs.replace(node, annotations=RATIOS)
    planned = node_resource.planned(seen(there, **changed))
    write, *told = planned.steps
    assert write.body["status"]["allocatable"][names.BATCH_CPU] == "23100"
    assert write.body["metadata"]["annotations"].keys() == {names.ANNOTATION_ORIGIN_ALLOCATABLE}
    assert [step.reason for step in told if step.warning] == reasons


def test_one_word_about_every_part(node: projections.Node) -> None:
    """Devices, labels and ratios go with the amounts in one write."""
    found = node_resource.planned(
        seen(
            node,
            devices=accelerators.Inventory(
                gpus={names.GPU_CORE: 100},
                adapters={names.RDMA: 200},
                labels={names.LABEL_GPU_MODEL: "a100"},
            ),
            amplification=strategy.Amplification(enable=True, ratios={"cpu": 2.0}),
        )
    )
    (write,) = (step for step in found.steps if isinstance(step, actions.PatchStatus))
    offered = write.body["status"]["allocatable"]
    assert (offered[names.GPU_CORE], offered[names.RDMA]) == ("100", "200")
    assert write.body["metadata"]["labels"] == {names.LABEL_GPU_MODEL: "a100"}
    annotations = write.body["metadata"]["annotations"]
    assert annotations[names.ANNOTATION_AMPLIFICATION] == '{"cpu":2.00}'
    assert annotations[names.ANNOTATION_CPU_NORMALIZATION] == "1.00"
    news = node_resource.breakdown(
        seen(node, amplification=strategy.Amplification(enable=True, ratios={"cpu": 2.0}))
    ).written.news
    assert 'amplification: none becomes {"cpu":2.00}' in news


@pytest.mark.parametrize(
    ("written", "published", "expected"),
    [
        pytest.param("25G", None, 25 * 10**9, id="named"),
        pytest.param("25G", 10 * 10**9, 25 * 10**9, id="changed"),
        pytest.param("25G", 25 * 10**9, None, id="stands there"),
        pytest.param(None, 10**9, "none", id="named no longer"),
        pytest.param("fast", 10**9, "none", id="unreadable"),
        pytest.param("-1", None, None, id="negative"),
        pytest.param("10P", None, None, id="a mistaken unit"),
    ],
)
def test_bandwidth_that_a_node_names_is_offered(
    node: projections.Node, written, published, expected
) -> None:
    name = names.NETWORK_BANDWIDTH
    there = {} if published is None else {name: published}
    annotations = {} if written is None else {names.ANNOTATION_NETWORK_BANDWIDTH: written}
    before = publishing(node, *LENT)
    now = msgspec.structs.replace(
        before,
        published=tuple({**part, **there} for part in before.published),
        annotations={**before.annotations, **annotations},
    )
    plan = node_resource.planned(seen(now, since_write=1.0))
    bodies = [one.body["status"] for one in plan.steps if isinstance(one, actions.PatchStatus)]
    if expected is None:
        assert not any(name in part for body in bodies for part in body.values())
        return
    wanted = None if expected == "none" else expected
    (body,) = bodies
    for part in body.values():
        assert name in part
        assert (None if part[name] is None else quantity.whole(part[name])) == wanted


def test_bandwidth_is_offered_where_colocation_is_on(node: projections.Node) -> None:
    annotations = {names.ANNOTATION_NETWORK_BANDWIDTH: "1G"}
    marked = msgspec.structs.replace(node, annotations=annotations)
    name, off = names.NETWORK_BANDWIDTH, seen(marked, enabled=False)
    assert node_resource.breakdown(off).devices[name] is None
    assert not any(
        name in part
        for step in node_resource.planned(off).steps
        if isinstance(step, actions.PatchStatus)
        for part in step.body["status"].values()
    )
    there = {name: 10**9}
    offering = msgspec.structs.replace(
        marked, published=tuple({**part, **there} for part in marked.published)
    )
    (step,) = (
        step
        for step in node_resource.planned(seen(offering, enabled=False)).steps
        if isinstance(step, actions.PatchStatus)
    )
    assert {part[name] for part in step.body["status"].values()} == {None}
