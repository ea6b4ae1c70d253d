"""Labels and annotation of the daemon's Node, on an API server that keeps who owns which field."""

import json

import pytest

from agent.device_daemon import daemon as daemons
from agent.device_daemon import looks, node_labels, output
from agent.device_daemon import settings as daemon_settings
from agent.device_daemon.hardware import findings
from api import names, resources
from kube.client import access, client
from process.runtime import metrics, supervise
from process.runtime.clock import ManualClock
from simulator import faults
from simulator.apiserver import apiserver
from tests import patience

NODE = "node-1"
COUNT = names.LABEL_DEVICE_COUNTS["npu"]
NPU = findings.Findings(
    (findings.Card("npu", "0000:3b:00.0", "npu-1-0", 0, 0, True),),
    labels={names.LABEL_GPU_VENDOR: "huawei", names.LABEL_GPU_MODEL: "Ascend-910B3"},
)


class Stand:
    """A Node, the daemon of its machine, and what the manager of that daemon finds."""

    def __init__(self, plane, kube, clock, folder, trouble):
        self.plane, self.kube, self.clock, self.trouble = plane, kube, clock, trouble
        self.found = NPU
        chosen = daemon_settings.Settings(prints_output_file=str(folder / "ic-device"))
        manager = looks.Manager("npus", lambda _host, _at: self.found, 60.0, clock)
        host = findings.Host("/nowhere", "/nowhere", lambda *_: "", lambda: None)
        self.daemon = daemons.Daemon(chosen, [manager], host, clock, metrics.Registry())
        self.daemon.node = node_labels.NodeLabels(kube, NODE)

    def metadata(self):
        return self.plane.objects.find(resources.NODES, NODE)["metadata"]

    async def label(self, manager, **labels):
        body = {"metadata": {"labels": labels}}
        await self.kube.patch(resources.NODES, NODE, body, field_manager=manager)


@pytest.fixture
async def stand(tmp_path):
    clock = ManualClock()
    trouble = faults.Faults(clock)
    async with apiserver.running(clock=clock, options=apiserver.Options(faults=trouble)) as plane:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"zone": "a"}, "annotations": {"by": "hand"}},
        }
        plane.objects.create(resources.NODES, node)
        found = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(found, clock=clock, user_agent="test") as kube:
            yield Stand(plane, kube, clock, tmp_path, trouble)


async def test_a_node_is_labelled_and_what_others_wrote_stays(stand):
    await stand.daemon.step()
    metadata = stand.metadata()
    assert metadata["labels"] == {
        "zone": "a",
        names.LABEL_GPU_VENDOR: "huawei",
        names.LABEL_GPU_MODEL: "Ascend-910B3",
        COUNT: "1",
    }
    assert metadata["annotations"]["by"] == "hand"
    assert json.loads(metadata["annotations"][names.ANNOTATION_DEVICES]) == {
        "npu": [
            {"bus": "0000:3b:00.0", "id": "npu-1-0", "minor": 0, "numaNode": 0, "healthy": True}
        ]
    }
    (mine,) = [one for one in metadata["managedFields"] if one["manager"] == node_labels.MANAGER]
    written = mine["fieldsV1"]["f:metadata"]
    keys = {key.removeprefix("f:") for part in written.values() for key in part} - {"."}
    assert mine["operation"] == "Apply"
    assert keys <= {*output.LABELS, *output.ANNOTATIONS}


async def test_a_look_that_finds_the_same_changes_nothing(stand):
    await stand.daemon.step()
    before = stand.metadata()["resourceVersion"]
    await stand.daemon.step()
    assert stand.metadata()["resourceVersion"] == before


async def test_what_is_said_goes_with_the_device(stand):
    await stand.daemon.step()
    stand.found = findings.Findings()
    await stand.daemon.step()
    assert stand.metadata()["labels"] == {"zone": "a"}
    assert stand.metadata()["annotations"] == {"by": "hand"}


async def test_labels_that_the_manager_wrote_otherwise_are_left_to_it(stand):
    await stand.label("koord-manager", **{names.LABEL_GPU_MODEL: "by-hand"})
    await stand.daemon.step()
    labels = stand.metadata()["labels"]
    assert (labels[names.LABEL_GPU_MODEL], labels[COUNT]) == ("by-hand", "1")
    assert stand.daemon.problems == {}
    stand.found = findings.Findings()
    await stand.daemon.step()
    assert stand.metadata()["labels"] == {"zone": "a", names.LABEL_GPU_MODEL: "by-hand"}


async def test_while_the_api_server_refuses_the_file_is_written_and_the_node_asked_again(stand):
    stand.trouble.add(faults.Rule(faults.Refuse(403), verb="patch", resource="nodes"))
    async with supervise.Supervisor("test") as supervisor:
        supervisor.start("looks", stand.daemon.run)
        await patience.until(
            lambda: "node" in stand.daemon.problems and stand.clock.next_wake, stand.clock.settle
        )
        assert "Node node-1 was not labelled" in stand.daemon.problems["node"]
        assert stand.daemon.unwritten
        assert (stand.clock.next_wake or 0) <= daemons.SOON_SECONDS
        assert COUNT not in stand.metadata()["labels"]
        stand.trouble.clear()

        async def step():
            await stand.clock.advance(1)

        await patience.until(lambda: stand.metadata()["labels"].get(COUNT), step)
        await patience.until(lambda: not stand.daemon.problems, step)
