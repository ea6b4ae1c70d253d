"""What commands read from a real Prometheus: queries that it takes, figures that it gives."""

import asyncio
import itertools
import json
import subprocess
import time

import pytest

from api import names, resources
from api.wire import durations
from cli import main
from cli.snapshot import reader
from tests import builders
from tests.cli.prometheus import served
from tests.cli.simulation.test_settings import batch, small
from tests.planes.programs import prometheus

GIB = 1 << 30
SCRAPE = 30
END = float(time.time() // SCRAPE * SCRAPE)
HOURS = 3
BEGIN = END - HOURS * 3600
HOLE = (3600, 5400)
"""Seconds after the beginning between which nothing was scraped."""


def moments():
    for seconds in range(-600, HOURS * 3600 + 1, SCRAPE):
        if not HOLE[0] < seconds <= HOLE[1]:
            yield seconds


def steady(value, until=None, since=None):
    """A gauge."""
    return [
        (BEGIN + at, value)
        for at in moments()
        if (until is None or at <= until) and (since is None or at >= since)
    ]


def counter(rate, until=None, since=None):
    """A counter that grows by a rate, or by a function of the seconds after the beginning."""
    grows = rate if callable(rate) else lambda _: rate
    total = itertools.accumulate(grows(at) * SCRAPE for at in range(-600, HOURS * 3600 + 1, SCRAPE))
    values = dict(zip(range(-600, HOURS * 3600 + 1, SCRAPE), total, strict=True))
    return [(at, round(values[round(at - BEGIN)], 3)) for at, _ in steady(0, until, since)]


def container(pod, name, node="n1", job="kubelet"):
    labels = {"namespace": "default", "pod": pod, "container": name, "id": f"/{pod}/{name}"}
    return labels | {"node": node, "instance": f"{node}:10250", "job": job}


def families():
    """A kubelet of a node with a service, scraped twice; a node whose agent tells; a bare one."""
    old, young = "api-66cd44b7c9-bbccd", "api-7d9f8c6b5d-x2k4p"
    root = {"id": "/", "node": "n1", "instance": "n1:10250"}
    cpu, memory = [], []
    for job in ("kubelet", "cadvisor"):
        for name, rate in (("app", lambda at: 1.0 if at <= HOLE[0] else 2.0), ("sidecar", 0.25)):
            cpu.append((container("web", name, job=job), counter(rate)))
            memory.append((container("web", name, job=job), steady(GIB)))
        cpu.append((container("web", "", job=job), counter(1.3)))
        cpu.append((container("web", "POD", job=job), counter(0.05)))
        cpu.append((root | {"job": job}, counter(lambda at: 2.25 if at <= HOLE[0] else 3.25)))
        memory.append((root | {"job": job}, steady(5 * GIB)))
    half = HOURS * 1800
    cpu.append((container(old, "app", "n2"), counter(0.5, until=half)))
    memory.append((container(old, "app", "n2"), steady(GIB, until=half)))
    cpu.append((container(young, "app", "n2"), counter(0.75, since=half)))
    memory.append((container(young, "app", "n2"), steady(GIB, since=half)))
    system = [
        ({"node": "n2", "resource": "cpu", "unit": "core"}, steady(0.6)),
        ({"node": "n2", "resource": "memory", "unit": "byte"}, steady(3 * GIB)),
    ]
    host = {"instance": "10.0.0.3:9100"}
    exported = [
        (host | {"cpu": str(number), "mode": mode}, counter(rate))
        for number in range(2)
        for mode, rate in (("user", 0.4), ("system", 0.1), ("idle", 0.5), ("iowait", 0.1))
    ]
    cpu.append((container("db-0", "app", "n3"), counter(0.3)))
    memory.append((container("db-0", "app", "n3"), steady(GIB)))
    return {
        "container_cpu_usage_seconds_total": ("counter", cpu),
        "container_memory_working_set_bytes": ("gauge", memory),
        "koordlet_node_metric_system_usage": ("gauge", system),
        "node_cpu_seconds_total": ("counter", exported),
        "node_memory_MemTotal_bytes": ("gauge", [(host, steady(64 * GIB))]),
        "node_memory_MemAvailable_bytes": ("gauge", [(host, steady(60 * GIB))]),
        "node_uname_info": ("gauge", [(host | {"nodename": "n3"}, steady(1))]),
        "koord_manager_lent_cores": ("gauge", [({"pod": pod}, steady(6)) for pod in "ab"]),
        "koord_manager_allocatable_cores": ("gauge", [({"pod": "a"}, steady(40))]),
        "koord_agent_node_cpu_cores": (
            "gauge",
            [({"by": "node"}, steady(9)), ({"by": "best-effort"}, steady(2))],
        ),
    }  # fmt: skip


@pytest.fixture(scope="module")
def snapshot():
    return small(
        batch("etl", 4),
        builders.a_node("n3", cpu="8"),
        builders.a_pod("api-7d9f8c6b5d-x2k4p", cpu="2", memory="2Gi", node="n2"),
        builders.a_pod("db-0", cpu="1", memory="2Gi", node="n3"),
    )


@pytest.fixture
async def address(tmp_path):
    async with prometheus.serving(tmp_path, families()) as url:
        yield url


async def ran(*words):
    return await asyncio.to_thread(main.main, list(words))


async def test_load_is_replayed_from_a_prometheus_and_from_the_file(
    address, snapshot, tmp_path, capsys
):
    saved, file = tmp_path / "s", tmp_path / "load.csv"
    reader.save(saved, snapshot)
    words = ("simulate", "load", f"--snapshot={saved}", "--step=5m", "-o=json")
    told = (f"--prometheus={address}", f"--hours={HOURS}", f"--until={durations.moment(END)}")
    assert await ran(*words, *told, f"--save-load={file}") == 0
    body = json.loads(capsys.readouterr().out)
    online = [one["online"] for one in body["moments"]]
    # Twice scraped counts once: 1.25 of web, 0.5 of the older pod of api, 0.3 of db; and besides
    # them 1.0 on the first node, 0.6 on the second, and on the third 1.0 less db.
    assert online[2] == pytest.approx(1.25 + 0.5 + 0.3 + 1.0 + 0.6 + 0.7, abs=0.01)
    # No figures: the last ones go on.
    assert online[14] == pytest.approx(online[2], abs=0.01)
    assert online[-1] == pytest.approx(2.25 + 0.75 + 0.3 + 1.0 + 0.6 + 0.7, abs=0.01)
    said = "\n".join(body["notes"])
    assert "of 3 online pods 3 have figures of their own" in said
    assert "default/api-7d9f8c6b5d-x2k4p: younger than the recording" in said
    assert "no figures of pods for hours 1 to 1.5" in said
    for source in ("Koord's agents", "cAdvisor", "node_exporter, by the names of hosts"):
        assert f"what 1 node uses outside pods comes from {source}" in said
    assert await ran(*words, f"--load={file}") == 0
    assert json.loads(capsys.readouterr().out)["moments"] == body["moments"]


async def test_reports_read_the_same_prometheus(address, snapshot, tmp_path, capsys):
    plane = served.Plane()
    plane.answers = {
        resources.CONFIG_MAPS.path(names.NAMESPACE): [],
        "/api/v1/nodes": list(snapshot.of(resources.NODES)),
        "/api/v1/pods": list(snapshot.of(resources.PODS)),
    }
    async with served.serving(plane) as url:
        login = served.kubeconfig(tmp_path, url)
        words = (
            "report",
            f"--prometheus={address}",
            f"--kubeconfig={login}",
            "--days=1",
            "-o=json",
        )
        assert await ran(*words, "--would") == 0
        would = json.loads(capsys.readouterr().out)
        assert await ran(*words) == 0
        past = json.loads(capsys.readouterr().out)
    # 60 % of 16 cores less what node and pod used at the peak.
    assert would["lent"]["n1"][names.BATCH_CPU] == pytest.approx(9600 - 3250, abs=30)
    hours = 24
    assert (past["lent"], past["batch"]) == (pytest.approx(6 * hours), pytest.approx(2 * hours))


def test_prometheus_takes_the_alert_rules():
    _, tool = prometheus.programs()
    found = subprocess.run(
        [tool, "check", "rules", "deploy/monitoring/rules.yaml"], capture_output=True, check=False
    )
    assert found.returncode == 0, found.stdout
