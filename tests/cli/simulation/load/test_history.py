"""Hours of load from a Prometheus: by pod, workload and node, with holes, bounds and a file."""

import asyncio
import json
import math

import pytest

from api.wire import durations
from cli import main
from cli.prometheus import client as prometheus
from cli.prometheus import samples
from cli.simulation.load import collected, history, series
from cli.snapshot import reader
from tests import builders
from tests.cli.placement import clusters
from tests.cli.prometheus import served
from tests.cli.simulation.test_settings import batch, small

GIB = 1 << 30
END = durations.timestamp(clusters.NOW)
STEP = 600.0
WEB = {"namespace": "default", "pod": "web"}
OF_PODS = "sum by (namespace, pod)"
_OF_POD = "(max by (namespace, pod, container)"
_BY_NODE = "(max by (node, kubernetes_io_hostname, instance, namespace, pod, container)"
POD_CPU, POD_MEMORY = f"{OF_PODS} {_OF_POD} (rate", f"{OF_PODS} {_OF_POD} (avg"
NODE_CPU, NODE_MEMORY = f"instance) {_BY_NODE} (rate", f"instance) {_BY_NODE} (avg"


def hour(at):
    """Hours after the beginning of six hours, at the end of which the figures of a step are."""
    return (at - STEP - (END - 6 * 3600)) / 3600


def a_prometheus(cpu=1.0, **more):
    """One that knows the only online pod, and nodes by cAdvisor."""
    made = served.Prometheus()
    node = {"node": "n1", "instance": "10.0.0.1:10250"}
    made.series = more | {
        POD_CPU: [(WEB, cpu)],
        POD_MEMORY: [(WEB, 3 * GIB)],
        'container_cpu_usage_seconds_total{id="/"}': [(node, 2.5)],
        'container_memory_working_set_bytes{id="/"}': [(node, 8 * GIB)],
        NODE_CPU: [(node, 1.5)],
        NODE_MEMORY: [(node, 3 * GIB)],
    }  # fmt: skip
    return made


async def read(made, snapshot=None, hours=6.0, step=STEP):
    asked = history.wanted(snapshot or small(), END, round(hours * 3600 / step), step)
    async with served.serving(made) as url, prometheus.opened(url, None, None) as source:
        return await history.read(source, asked)


def of(found, name):
    return [(at, use) for at, key, use in found.rows if key == name]


async def test_pods_and_nodes_are_read_step_by_step():
    found = await read(a_prometheus(cpu=lambda at: 1.0 + hour(at)))
    web = of(found, "default/web")
    # Each step has the figure at its end, and the last row gives the whole duration.
    assert web[:2] == [(0.0, (1.0, 3 * GIB)), (600.0, (1.167, 3 * GIB))]
    assert (len(web), web[-1][0]) == (37, 6 * 3600)
    assert of(found, "n1")[:2] == [(0.0, (1.0, 5 * GIB)), (600.0, (1.0, 5 * GIB))]
    said = "\n".join(found.notes)
    assert "of 1 online pod 1 has figures of its own" in said
    assert "what 1 node uses outside pods comes from cAdvisor" in said
    assert "what 1 node uses outside pods is not in the Prometheus" in said


async def test_what_agents_say_of_nodes_goes_first_and_others_fill_up():
    made = a_prometheus()
    made.series = {
        'koordlet_node_metric_system_usage{resource="cpu"}': [({"node": "n1"}, 0.7)],
        'koordlet_node_metric_system_usage{resource="memory"}': [({"node": "n1"}, GIB)],
        "max by (nodename) (sum by (instance) (max by (instance, cpu, mode) (rate": [
            ({"nodename": "n2"}, 0.5)
        ],
        "max by (nodename)": [({"nodename": "n2"}, 4 * GIB)],
        **made.series,
    }
    made.series[NODE_CPU].append(({"instance": "n2:10250"}, 0.25))
    made.series[NODE_MEMORY].append(({"instance": "n2:10250"}, GIB))
    found = await read(made, hours=1)
    assert of(found, "n1")[0] == (0.0, (0.7, GIB))
    assert of(found, "n2")[0] == (0.0, (0.25, 3 * GIB))
    said = "\n".join(found.notes)
    assert "comes from Koord's agents" in said
    assert "comes from node_exporter, by the names of hosts" in said


async def test_a_pod_that_is_younger_is_told_by_its_workload():
    labels = {"namespace": "default"}
    older = {**labels, "pod": "api-7d9f8c6b5d-aaaaa"}
    pods = (
        builders.a_pod("api-7d9f8c6b5d-x2k4p", cpu="2", memory="2Gi", node="n1"),
        builders.a_pod("api-7d9f8c6b5d-z9w8v", cpu="2", memory="2Gi", node="n2"),
    )
    young = {**labels, "pod": "api-7d9f8c6b5d-x2k4p"}
    gone = {**labels, "pod": "api-66cd44b7c9-bbccd"}
    made = a_prometheus()
    made.series[POD_CPU] += [
        (gone, lambda at: 0.5 if hour(at) < 3 else None),
        (young, lambda at: 0.9 if hour(at) >= 3 else None),
    ]
    made.series[POD_MEMORY] += [
        (gone, GIB), (young, GIB), (older, "NaN"),
    ]  # fmt: skip
    found = await read(made, small(*pods))
    source = series.Recorded(found.rows)
    uses = {
        pod: [source.use(series.Asks(f"default/{pod}", 2.0, GIB), at).cpu for at in (0, 3 * 3600)]
        for pod in ("api-7d9f8c6b5d-x2k4p", "api-7d9f8c6b5d-z9w8v")
    }
    # What pods of the Deployment used that were there before.
    assert uses == {"api-7d9f8c6b5d-x2k4p": [0.5, 0.9], "api-7d9f8c6b5d-z9w8v": [0.5, 0.9]}
    assert "younger than the recording" in "\n".join(found.notes)


async def test_holes_and_pods_without_figures_are_told():
    made = a_prometheus(cpu=lambda at: None if 1.9 < hour(at) < 3 or hour(at) < 0.9 else 2.0)
    pod = builders.a_pod("db-0", cpu="2", memory="2Gi", node="n1", namespace="shop")
    found = await read(made, small(pod))
    said = "\n".join(found.notes)
    assert "no figures of pods for hours 0 to 1, 2 to 3: those before go on" in said
    assert "shop/db-0: without any figures, so what the snapshot measured" in said
    source = series.Recorded(found.rows)
    web = series.Asks("default/web", 4.0, GIB)
    assert [source.use(web, at * 3600).cpu for at in (0, 2.5, 4)] == [2.0, 2.0, 2.0]


async def test_single_missing_figures_are_counted():
    made = a_prometheus(cpu=lambda at: None if math.isclose(hour(at), 2, abs_tol=0.01) else 2.0)
    pod = builders.a_pod("db-0", cpu="2", memory="2Gi", node="n1")
    made.series[POD_CPU].append(({"namespace": "default", "pod": "db-0"}, 1.0))
    made.series[POD_MEMORY].append(({"namespace": "default", "pod": "db-0"}, GIB))
    found = await read(made, small(pod))
    assert "1 figure is missing in between" in "\n".join(found.notes)


async def test_a_range_that_is_too_much_is_asked_in_parts():
    made = a_prometheus()
    made.most_points = 5
    found = await read(made)
    assert len(of(found, "default/web")) == 37
    assert {points for _, points, _ in made.ranges if points <= 5} == {4}
    made.most_points = 0
    with pytest.raises(history.HistoryError, match="even one moment is too much"):
        await read(made)


async def test_where_no_container_is_named_cgroups_of_pods_are_read():
    made = a_prometheus()
    cpu, memory = "cpu_usage_seconds_total", "memory_working_set_bytes"
    made.series = {
        f'{POD_CPU}(container_{cpu}{{container=""': [(WEB, 1.0)],
        f'{POD_MEMORY}_over_time(container_{memory}{{container=""': [(WEB, GIB)],
    }
    found = await read(made, hours=1)
    assert of(found, "default/web")[0] == (0.0, (1.0, GIB))
    assert all('namespace=~"default"' in query for query in made.asked if OF_PODS in query)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        pytest.param(None, "let it scrape the cAdvisor metrics of the kubelets", id="nothing"),
        pytest.param({"namespace": "x", "pod": "y"}, "may scrape another cluster", id="others"),
    ],
)
async def test_a_prometheus_without_these_pods_is_refused_with_a_remedy(labels, why):
    made = a_prometheus()
    for query in list(made.series):
        if OF_PODS in query:
            made.series[query] = [] if labels is None else [(labels, 1.0)]
    with pytest.raises(history.HistoryError, match=why):
        await read(made)


@pytest.mark.parametrize("odd", [-1.0, 1e9, "NaN", "+Inf"])
async def test_figures_that_no_machine_has_are_left_out(odd):
    found = await read(a_prometheus(cpu=lambda at: odd if hour(at) > 0 else 1.0))
    assert [use.cpu for _, use in of(found, "default/web")] == [1.0, 1.0]


def test_more_figures_than_fit_are_refused_before_anything_is_read():
    with pytest.raises(history.HistoryError, match="write a longer --step or fewer --hours"):
        history.wanted(small(), END, 1_000_000, 1.0)


def test_batch_pods_are_not_asked_for():
    asked = history.wanted(small(batch("etl", 2)), END, 6, STEP)
    assert asked.pods == {"default/web"}
    assert asked.nodes == {"n1": "n1", "n2": "n2"}


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"node": "n1", "instance": "n2:9100"}, "n1"),
        ({"instance": "n2:9100"}, "n2"),
        ({"kubernetes_io_hostname": "host-1"}, "n1"),
        ({"instance": "10.0.0.1:9100"}, None),
        ({}, None),
    ],
)
def test_a_node_is_found_by_the_first_label_that_names_one(labels, node):
    span = samples.Range(0.0, 1, 60.0)
    asked = collected.Wanted(span, frozenset(), {"n1": "n1", "n2": "n2", "host-1": "n1"})
    assert asked.node(labels, ("node", "kubernetes_io_hostname", "instance")) == node


async def run(made, tmp_path, *words):
    reader.save(tmp_path / "s", small(batch("a", 4)))
    async with served.serving(made) as url:
        words = [f"--prometheus={url}" if word == "--prometheus" else word for word in words]
        given = ["simulate", "load", f"--snapshot={tmp_path / 's'}", *words]
        return await asyncio.to_thread(main.main, given)


async def test_what_was_read_is_saved_and_replayed_alike(tmp_path, capsys):
    made, file = a_prometheus(cpu=lambda at: 1.0 + hour(at) / 10), tmp_path / "load.csv"
    words = ("--hours=6", "--step=10m", "-o=json")
    assert await run(made, tmp_path, "--prometheus", f"--save-load={file}", *words) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["notes"][0] == f"load of the 6 hours before {clusters.NOW}, by a Prometheus"
    assert len(first["moments"]) == 36
    # 1 of the service, 1 of the system of the first node and 1 of the second by the snapshot.
    assert first["moments"][0]["online"] == pytest.approx(1.0 + 1.0 + 1.0)
    assert file.stat().st_mode & 0o777 == 0o600
    assert await run(made, tmp_path, f"--load={file}", "--step=10m", "-o=json") == 0
    second = json.loads(capsys.readouterr().out)
    assert second["moments"] == first["moments"]
    assert second["summary"] == first["summary"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--day-curve", "--until=2026-01-31T08:00:00Z"], "--until goes with --prometheus"),
        (["--day-curve", "--save-load=x"], "--save-load goes with --prometheus"),
        (["--prometheus", "--until=yesterday"], "--until: "),
        (["--prometheus", "--days=40"], "11520 steps"),
        (["--prometheus=ftp://x"], "write http://HOST:PORT"),
        (["--prometheus=http://127.0.0.1:9"], "does not answer"),
    ],
)
async def test_what_cannot_be_read_is_refused(words, why, tmp_path, capsys):
    assert await run(a_prometheus(), tmp_path, *words) == 2
    assert why in capsys.readouterr().err


def test_nodes_are_rows_of_a_file_too():
    found = series.read("seconds,pod,node,cpu,memory\n0,a/b,,1,1\n0,,n1,500m,2Gi\n60,,n1,1,2Gi\n")
    assert [found.system("n1", at) for at in (0, 59, 60)] == [
        (0.5, 2 * GIB), (0.5, 2 * GIB), (1.0, 2 * GIB)
    ]  # fmt: skip
    assert found.system("n2", 0) is None
