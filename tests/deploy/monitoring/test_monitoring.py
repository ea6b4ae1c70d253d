"""Alerts and dashboards look at what the processes really tell, by labels that they really have."""

import contextlib
import itertools
import json
import re

import pytest
import pytest_asyncio
import yaml

from cli import main
from cli.dev import all_in_one, control_planes, fleet
from cli.install import apply
from deploy.site import code_metrics
from kube.client import client as clients
from process.runtime import clock as clocks
from simulator.kubelet import kubelet
from tests.deploy.monitoring import promql
from tests.planes import raw
from tests.planes.install import chart

FOLDER = chart.DEPLOY / "monitoring"
RULES = yaml.safe_load((FOLDER / "rules.yaml").read_text())
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("dashboards/*.json")}
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
QUERIES = [
    *(pytest.param(rule["expr"], id=rule["alert"]) for rule in ALERTS),
    *(
        pytest.param(target["expr"], id=f"{name}: {panel['title']} {target['refId']}")
        for name, page in DASHBOARDS.items()
        for panel in page["panels"]
        for target in panel.get("targets", ())
    ),
]
# What a collector adds to every series.
SCRAPED = {"namespace", "pod", "instance", "job"}
# Told by the API server, not by us.
FOREIGN = {"apiserver_admission_webhook_fail_open_count": ("counter", ("name", "type"))}
PARTS = {"_bucket": ("counter", ("le",)), "_count": ("counter", ()), "_sum": ("counter", ())}
INTERPRETER = re.compile(r"^# TYPE (process_\w+) (\w+)$", re.MULTILINE)
LABELLED = re.compile(r"\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}")


class Told:
    """Every metric of every process: its kind, its labels, and whose it is."""

    def __init__(self):
        self.known = dict(FOREIGN)
        self.processes = {}
        self.registered = {}

    def add(self, process, registry):
        described = self.registered[process] = registry.described()
        for name, (kind, labels) in described.items():
            if kind == "histogram":
                for part, (as_kind, more) in PARTS.items():
                    self.known[name + part] = (as_kind, (*labels, *more))
            else:
                self.known[name] = (kind, labels)
        text = registry.exposition()[0].decode()
        for name, kind in INTERPRETER.findall(text):
            self.known[name] = (kind, ())
        self.processes[process] = {*described, *(name for name, _ in INTERPRETER.findall(text))}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory):
    """The whole system with one node on the simulator, until a manager leads."""
    folder, clock = tmp_path_factory.mktemp("system"), clocks.SystemClock()
    gates = dict.fromkeys(("PSICollector", "ThrottlingCollector", "InterferenceDetection"), True)
    hosts = fleet.Fleet(fleet.Options(folder / "hosts", feature_gates=gates), clock)
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        populated = await enter(control_planes.embedded(0, hosts.hooks, clock))
        hosts.admit(populated.token)
        access = populated.access
        api = await enter(clients.Client(access, clock=clock, user_agent="test"))
        await apply.definitions(api, clock)
        await apply.everything(api, apply.documents("foundation.yaml"))
        running = await enter(
            all_in_one.running(all_in_one.Options(folder), access=access, clock=clock)
        )
        await enter(hosts.living())
        await hosts.add(populated.kubelets, kubelet.Machine("n"), access)

        async def leads():
            return (
                running.manager.registry.value(
                    "koord_controller_queue_keys", {"controller": "settings"}
                )
                is not None
            )

        await raw.eventually(leads)
        found = Told()
        for name, app in (*running.apps(), *hosts.agents.items()):
            found.add("agent" if name == "n" else name, app.registry)
        yield found


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_is_sound(told, query):
    uses = promql.uses(query.replace("$__rate_interval", "5m"))
    assert uses
    for use in uses:
        assert use.metric in told.known, f"nobody tells {use.metric}"
        kind, labels = told.known[use.metric]
        assert use.matched <= {*labels, *SCRAPED}, f"{use.metric} has no such label"
        counts = bool(promql.COUNTING & set(use.within[-1:]))
        assert counts == use.ranged, f"a range is for rates: {use.metric}"
        # A set operation may look at a counter only for whether it is there.
        assert counts <= (kind == "counter"), f"{use.metric} does not only grow"
        if "histogram_quantile" in use.within:
            assert use.metric.endswith("_bucket")
            assert "le" in use.grouped


@pytest.mark.parametrize("query", QUERIES)
def test_labels_to_group_by_exist(told, query):
    uses = promql.uses(query.replace("$__rate_interval", "5m"))
    known = set().union(*(told.known[use.metric][1] for use in uses)) if uses else set()
    for use in uses:
        assert use.grouped <= {*known, *SCRAPED}


def test_the_reference_lists_every_metric_that_a_running_process_tells(told):
    listed = {one.name: one for one in code_metrics.found()}
    for process, described in told.registered.items():
        for name, (kind, labels) in described.items():
            one = listed[name]
            assert (one.kind, one.labels) == (kind, labels), name
            assert one.meaning
            assert process in one.processes, f"{name} of the {process}"
    assert {one.name for one in listed.values() if not one.name.startswith("koord")} >= {
        name for names in told.processes.values() for name in names if name.startswith("process_")
    }


def test_every_process_has_what_every_process_shows(told):
    common = {
        "koord_process_ready",
        "koord_process_loop_lag_seconds",
        "koord_kube_contact_age_seconds",
        "process_resident_memory_bytes",
    }
    assert {"extender", "webhook", "manager", "descheduler", "agent"} == set(told.processes)
    for name, metrics in told.processes.items():
        assert common <= metrics, name


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_to_do(rule):
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert re.fullmatch(r"Koord[A-Z]\w+", rule["alert"])
    (*uses,) = promql.uses(rule["expr"])
    grouped = set().union(*(use.grouped for use in uses))
    for text in rule["annotations"].values():
        # A label that the expression drops would be shown as nothing.
        assert set(LABELLED.findall(text)) - {"value"} <= grouped


def test_alerts_have_names_of_their_own():
    names = [rule["alert"] for rule in ALERTS]
    assert len(names) == len(set(names))


def test_groups_of_rules_have_names_of_their_own():
    """Prometheus refuses a file in which a name of a group is repeated."""
    names = [group["name"] for group in RULES["groups"]]
    assert len(names) == len(set(names))


def test_the_shipped_dashboards_are_what_the_command_writes(tmp_path, capsys):
    assert main.main(["render", "dashboards", "--to", str(tmp_path)]) == 0
    written = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert written == DASHBOARDS, "run koord render dashboards --to deploy/monitoring/dashboards"
    assert "wrote 11 dashboards" in capsys.readouterr().out


def test_every_dashboard_has_an_address_of_its_own():
    pages = DASHBOARDS.values()
    assert len({page["uid"] for page in pages}) == len({p["title"] for p in pages}) == len(pages)
    for page in pages:
        assert len(page["uid"]) <= 40
        variables = {one["name"]: one["type"] for one in page["templating"]["list"]}
        assert variables == {"datasource": "datasource", "namespace": "query"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_fit_the_page_and_leave_each_other_alone(name):
    panels = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    for place in places:
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
    for a, b in itertools.combinations(places, 2):
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, (a, b)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_asks_the_chosen_source_and_legends_name_labels(told, name):
    for panel in DASHBOARDS[name]["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            uses = promql.uses(target["expr"].replace("$__rate_interval", "5m"))
            assert all("namespace" in use.matched for use in uses)
            labels = set().union(*(told.known[use.metric][1] for use in uses))
            assert set(LABELLED.findall(target["legendFormat"])) <= {*labels, *SCRAPED}


@pytest.mark.parametrize("file", ["service-monitor.yaml", "pod-monitor.yaml"])
def test_monitors_find_our_pods_by_port_and_label(file):
    monitor = yaml.safe_load((FOLDER / file).read_text())
    assert monitor["metadata"]["namespace"] == "koordinator-system"
    assert monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] == "koord"
    endpoints = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]
    assert [endpoint["port"] for endpoint in endpoints] == ["metrics"]
