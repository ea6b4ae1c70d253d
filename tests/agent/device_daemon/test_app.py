"""The device daemon as a whole: it listens, labels its Node, says what is wrong, and stops."""

import json

import aiohttp
import pytest

from agent.device_daemon import app, node_labels
from agent.device_daemon import settings as daemon_settings
from agent.device_daemon.hardware import findings, registry
from api import names, resources
from kube.client import access
from process.configuration import settings as process_settings
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from tests import patience
from tests.planes.devices import pci_tree, vendor_tools

NODE = "node-1"


class World:
    """A host with one accelerator, an API server, and the settings of the daemon."""

    def __init__(self, folder):
        self.folder, self.tree = folder, pci_tree.PciTree(folder / "sys")
        vendor_tools.plug(self.tree, "metax", folder / "dev")
        path = vendor_tools.install(folder / "bin", vendor_tools.METAX)
        self.settings = daemon_settings.Settings(
            node_name=NODE,
            prints_output_file=str(folder / "out/ic-device"),
            labels_file=folder / "out/labels",
            remove_on_stop=True,
            # Virtual time passes while tools take real time.
            look_seconds=1e9,
            sys=self.tree.sys,
            dev=folder / "dev",
            tools=daemon_settings.ToolSettings(path=path, seconds=60),
            health=daemon_settings.HealthServer(host="127.0.0.1", port=0, linger_seconds=0),
        )


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


async def page(url, path):
    async with aiohttp.ClientSession() as session, session.get(url + path) as answer:
        return answer.status, await answer.text()


async def test_from_a_card_to_the_labels_of_the_node_and_back(world):
    clock = ManualClock()
    async with apiserver.running(clock=clock) as plane:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        plane.objects.create(resources.NODES, node)

        async def found():
            return access.Access(plane.url, plane.ca, access.StaticToken(plane.token))

        def labels():
            return plane.objects.find(resources.NODES, NODE)["metadata"].get("labels", {})

        async with app.running(world.settings, access=found, clock=clock) as running:
            await patience.until(lambda: running.daemon.looked, clock.settle)
            assert labels()[names.LABEL_GPU_MODEL] == "MXC500"
            status, text = await page(running.url, "/readyz")
            assert status == 200, text
            _, figures = await page(running.url, "/metrics")
            assert 'koord_device_daemon_devices{kind="gpu"} 1.0' in figures
            (world.folder / "bin/mx-smi").write_text("#!/bin/sh\nexit 4\n")
            await patience.until(
                lambda: "metax" in running.daemon.problems, lambda: clock.advance(450)
            )
            _, text = await page(running.url, "/readyz")
            assert "exit code 4" in text
            assert json.loads((world.folder / "out/ic-device").read_text())[0]["uuid"] == "GPU-77"
            world.tree.remove("0000:6b:00.0")
            await patience.until(lambda: not labels(), lambda: clock.advance(450))
        assert list((world.folder / "out").iterdir()) == []
        managers = plane.objects.find(resources.NODES, NODE)["metadata"].get("managedFields", ())
        assert node_labels.MANAGER not in {one["manager"] for one in managers}


async def test_without_a_node_no_api_server_is_looked_for(world):
    clock = ManualClock()
    settings = world.settings.model_copy(update={"node_name": ""})

    async with app.running(settings, access=nowhere, clock=clock) as running:
        await patience.until(lambda: running.daemon.looked, clock.settle)
        assert (world.folder / "out/labels").exists()


async def nowhere():
    raise AssertionError("nothing is to be labelled")


async def test_each_hardware_type_has_a_manager_of_its_own_found_through_the_registry(
    world, monkeypatch
):
    """One more type is a module and a line; what goes wrong in one hides nothing of the others."""

    def abacus(_host, _at):
        return findings.Findings((findings.Card("npu", "0000:01:00.0"),))

    def broken(_host, _at):
        raise LookupError("beads")

    monkeypatch.setitem(registry.HARDWARE, "abacus", abacus)
    monkeypatch.setitem(registry.HARDWARE, "broken", broken)
    chosen = ("metax", "abacus", "broken")
    settings = world.settings.model_copy(update={"node_name": "", "hardware": chosen})
    clock = ManualClock()
    async with app.running(settings, access=nowhere, clock=clock) as running:
        await patience.until(lambda: running.daemon.looked, clock.settle)
        _, figures = await page(running.url, "/metrics")
        for kind in ("gpu", "npu"):
            assert f'koord_device_daemon_devices{{kind="{kind}"}} 1.0' in figures
        assert running.daemon.problems == {"broken": "LookupError: beads"}


async def test_a_configuration_file_is_read_at_the_start_and_not_again(world):
    file = world.folder / "config.yaml"
    before, after = world.folder / "out/before", world.folder / "out/after"
    file.write_text(f"flags: {{kdd: {{printsOutputFile: {before}, sleepInterval: 5m}}}}\n")
    given = world.settings.model_dump(by_alias=True, exclude={"prints_output_file", "node_name"})
    read = process_settings.load(
        daemon_settings.Settings, file=file, environ={}, prefix="KOORD_DEVICE_DAEMON", flags=()
    )
    settings = daemon_settings.Settings.model_validate(
        {**given, "printsOutputFile": read.prints_output_file, "sleepInterval": read.sleep_interval}
    )
    clock = ManualClock()
    async with app.running(settings, access=nowhere, clock=clock) as running:
        await patience.until(lambda: running.daemon.looked, clock.settle)
        file.write_text(f"flags: {{kdd: {{printsOutputFile: {after}, sleepInterval: 1s}}}}\n")
        before.unlink()
        await patience.until(before.exists, lambda: clock.advance(150))
        assert not after.exists()
