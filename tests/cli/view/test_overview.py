"""The picture of the cluster and its two renderings."""

import dataclasses
from typing import Any

import msgspec
import pytest
from rich import console

from api import names
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from cli.dev import pod_load
from cli.quota import cluster
from cli.quota import table as quota_table
from cli.view import overview, tables
from domain.daily_sums import effects, sums
from tests import builders
from tests.cli.commands import test_get

WORDS = (
    "0/2 nodes are available: 2 too small. no new claims to deallocate, preemption: 0/2 nodes are "
    "available: 2 Preemption is not helpful for scheduling."
)
BATCH = {names.BATCH_CPU: "3000", names.BATCH_MEMORY: "4Gi"}


def _taken(pods: list[dict[str, Any]], metrics: list[dict[str, Any]]) -> overview.Picture:
    nodes = [
        builders.a_node(
            "n1", cpu="16", extra={names.BATCH_CPU: "5000", names.BATCH_MEMORY: "20Gi"}
        ),
        builders.a_node("n2", cpu="8", ready=False),
    ]
    return overview.take(
        [msgspec.convert(raw, core.Node) for raw in nodes],
        [msgspec.convert(raw, core.Pod) for raw in pods],
        {raw["metadata"]["name"]: nodemetric.read_node_metric(raw) for raw in metrics},
    )


@pytest.fixture
def taken() -> overview.Picture:
    waiting = builders.a_pod("whale", requests={**BATCH, names.BATCH_CPU: "60k"}, priority=5000)
    waiting["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "message": WORDS}
    ]
    gated = builders.a_pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": "quota"}]
    return _taken(
        [
            builders.a_pod("web", cpu="6", memory="8Gi", node="n1", priority=9000),
            builders.a_pod("job", requests=BATCH, node="n1", priority=5000),
            builders.a_pod("done", cpu="4", node="n1", phase="Succeeded"),
            waiting,
            gated,
            builders.a_pod("new"),
        ],
        [builders.a_node_metric("n1", cpu="4500m", memory="10Gi")],
    )


def test_nodes_show_what_they_have_request_use_and_lend(taken: overview.Picture) -> None:
    first, second = taken.nodes
    assert first.cpu == overview.Gauge(16000, 6000, 4500, 5000, 3000)
    assert first.memory.used == 10 * 2**30
    assert first.pods == 2, "a finished pod holds nothing"
    assert second.cpu == overview.Gauge(8000, 0, None, 0, 0)
    assert not second.ready
    assert (taken.running, taken.batch_running) == (2, 1)


def test_pending_pods_have_a_reason(taken: overview.Picture) -> None:
    reasons = {row.key: row.reason for row in taken.pending}
    assert reasons == {
        "default/whale": "0/2 nodes are available: 2 too small. Free batch cores: n1 2.0, n2 0.0.",
        "default/gated": "waits behind quota",
        "default/new": "scheduler default-scheduler has not tried it yet",
    }
    asks = {row.key: row.asks for row in taken.pending}
    assert asks["default/whale"] == "batch 60.0 cores, 4.0Gi"


def test_plain_lines(taken: overview.Picture) -> None:
    found = list(tables.lines(taken))
    assert found[1].split() == ["n1", "16.0", "6.0", "4.5", "5.0", "3.0", "10.0Gi", "2"]
    assert found[2].split() == ["n2", "8.0", "0.0", "?", "0.0", "0.0", "?", "0"]
    assert "2 pods running, 1 of them batch; 3 pending" in found


def test_what_is_switched_off_where_stands_above_all() -> None:
    nodes = [
        msgspec.convert(builders.a_node(name, labels={"pool": pool}), core.Node)
        for name, pool in (("n1", "gpu"), ("n2", "cpu"), ("n3", "gpu"))
    ]
    written = {
        "extender": "observe",
        "webhook": "enforce",
        "agent.evictions": "off\n",
        "agent.nodes.off": "pool=gpu",
        "agent.namespaces.observe": "a,b",
        "agent.cpu-burst": "enforce",
        "agent.cpu-brust": "off",
        "extendr": "off",
        "preemption": "perhaps",
    }
    shown = overview.take(nodes, [], {}, overview.Maps(written))
    assert list(tables.lines(shown))[:7] == [
        "switch: agent.evictions is off",
        "switch: agent.namespaces.observe is a,b",
        "switch: agent.nodes.off is pool=gpu: 2 of 3 nodes (n1, n3)",
        "switch: extender is observe",
        "switch: " + next(one for one in shown.switched if "cpu-brust" in one),
        "switch: extendr: there is no such switch; did you mean extender? (this changes nothing)",
        "switch: preemption is 'perhaps': write enforce, observe, off (this changes nothing)",
    ]


def test_what_agents_did_on_the_latest_day_is_told() -> None:
    did = effects.Effects(watched=3600.0, enforced=3600.0, suppressed=7200.0, evicted=2.0)
    rates = sums.Rates(sums.Cluster(1.0), {})
    days = sums.added(sums.added((), "2026-06-30", rates, 60), "2026-07-01", rates, 60)
    data = {sums.KEY: sums.text(sums.with_effects(days, "2026-07-01", did))}
    shown = overview.take([], [], {}, overview.Maps(sums=data))
    (said,) = shown.agents
    assert said.startswith("2026-07-01 (UTC): Agents held back 2.0 core-hours of best-effort work")
    assert said in list(tables.lines(shown))


@pytest.mark.parametrize("text", ["", "[", "[]", '[{"date": 5}]'])
def test_sums_that_cannot_be_read_are_left_out(text) -> None:
    assert overview.take([], [], {}, overview.Maps(sums={sums.KEY: text})).agents == ()


UNREADABLE = (
    "koord-scheduler-config: is not YAML: line 2: did not find expected node content; write a "
    "KubeSchedulerConfiguration, or remove the key"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(
            "{profiles: [{pluginConfig: [{name: LoadAwareScheduling, args: {usageThresholds:"
            " {cpu: 60}}}, {name: Reservation}], plugins: {score: {enabled: [{name:"
            " LoadAwareScheduling, weight: 9}], disabled: [{name: '*'}]}}}]}",
            [
                'plug-ins: LoadAwareScheduling uses {"usageThresholds":{"cpu":60}}',
                "plug-ins: Reservation uses {}",
                "plug-ins: score: * disabled",
                "plug-ins: score: LoadAwareScheduling (9) enabled",
            ],
            id="arguments",
        ),
        pytest.param(
            "[",
            [
                "plug-ins: is refused, what was read before stays in force: " + UNREADABLE,
            ],
            id="refused",
        ),
    ],
)
def test_what_plugins_are_told_stands_above_all(text, said) -> None:
    maps = overview.Maps(arguments={"koord-scheduler-config": text})
    shown = list(tables.lines(overview.take([], [], {}, maps)))
    assert [line for line in shown if line.startswith("plug-ins: ")] == said


def test_a_crowd_of_pending_pods_is_cut_short() -> None:
    crowd = _taken([builders.a_pod(f"p{number:02}") for number in range(30)], [])
    assert list(tables.lines(crowd))[-1] == "  and 18 more"


def test_the_table_names_every_node_and_pending_pod(taken: overview.Picture) -> None:
    screen = console.Console(width=120, record=True, file=None, quiet=False)
    with screen.capture() as captured:
        screen.print(tables.render(taken, "koord"))
    text = captured.get()
    for word in ("n1", "n2", "default/whale", "0/2 nodes are available", "2 running (1 batch)"):
        assert word in text


def test_no_figure_is_cut_in_the_narrowest_table() -> None:
    name = "ip-10-0-201-23.eu-central-1.compute.internal"
    node = msgspec.convert(builders.a_node(name, cpu="192", memory="2048Gi"), core.Node)
    held = builders.a_pod("whole", cpu="100", memory="1000Gi", node=name)
    shown = overview.take([node], [msgspec.convert(held, core.Pod)], {})
    screen = console.Console(width=tables.NARROWEST)
    with screen.capture() as captured:
        screen.print(tables.render(shown, "koord"))
    text = captured.get()
    assert "…" not in text
    assert "100.0" in text
    parts = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert name in "".join(parts)


@pytest.mark.parametrize(
    ("gauge", "expected"),
    [
        (overview.Gauge(16000, 8000, 6000, 0, 2000), "████▓▓░░········"),
        (overview.Gauge(16000, 32000, 32000, 0, 0), "█" * 16),
        (overview.Gauge(16000, 0, None, 0, 0), "·" * 16),
        (overview.Gauge(0, 0, 0, 0, 0), "·" * 16),
    ],
    ids=["mixed", "overfull", "unmeasured", "no capacity"],
)
def test_bar(gauge: overview.Gauge, expected: str) -> None:
    assert tables.bar(gauge, 16).plain == expected


def test_online_load_moves_and_stays_below_its_request() -> None:
    seen = {pod_load.online("uid", 6000, 2**30, second) for second in range(0, 180, 5)}
    assert len(seen) > 10
    assert all(2000 < use.cpu_milli < 4000 for use in seen)
    assert pod_load.batch(3000, 2**30) == pod_load.Use(2700, int(0.8 * 2**30))


def test_quotas_stand_below_the_nodes_those_with_waiting_pods_first() -> None:
    rows = quota_table.rows(cluster.build(test_get.TEAMS))
    shown = dataclasses.replace(overview.take([], [], {}), quotas=rows)
    lines = "\n".join(tables.lines(shown))
    assert lines.index("team-a     team-a") < lines.index("quotas     team-c")
    assert "RESOURCE  USED  ENTITLED" in lines
    assert overview.as_json(shown)["quotas"][0]["lentTo"] == {}
    many = dataclasses.replace(shown, quotas=rows * 5)
    assert "and 3 more quotas: koord get quota -A" in "\n".join(tables.lines(many))
    group = tables.render(shown, "koord")
    assert "team-c" in " ".join(str(part) for part in group.renderables)
