"""An agent that is configured by a ConfigMap: every part takes what it says."""

import json

import pytest

from agent import settings as agent_settings
from agent.informers import settings_map
from api import names, resources
from process.configuration import settings as process_settings
from tests.agent import test_app

world = test_app.world
NAME = "koordlet-config"
TEXT = """
tickSeconds: 2
strategies: {mode: enforce, modes: {block-io: "off"}}
history: {store: disk}
audit: {folder: FOLDER/elsewhere, mostEvents: 2}
prediction: {trainingSeconds: 4}
report: {aggregateSeconds: 77}
nri: {enable: false}
hookServer: {enable: true, socket: FOLDER/hooks.sock, folder: FOLDER/hookserver.d}
kubelet: {intervalSeconds: 3}
featureGates: {CgroupReconcile: true, BECPUSuppress: false}
"""


def put(world, text, namespace=names.NAMESPACE, key="settings.yaml"):
    meta = {"name": NAME, "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: text}}
    found = world.plane.objects.find(resources.CONFIG_MAPS, NAME, namespace)
    if found is not None:
        world.plane.objects.delete(resources.CONFIG_MAPS, NAME, namespace)
    world.plane.objects.create(resources.CONFIG_MAPS, body)


async def events(agent, size):
    status, text = await test_app.get(f"{agent.health_url}/events?size={size}")
    return status, json.loads(text)["Events"] if status == 200 else text


async def test_every_part_takes_what_the_config_map_says(world, new_pod):
    put(world, TEXT.replace("FOLDER", str(world.folder)))
    world.add_pod(new_pod("online", "Burstable"), 5000)
    world.add_pod(new_pod("batch", "BestEffort"), 1000)
    world.create(resources.NODE_METRICS, {"spec": {}})
    world.create(resources.NODE_SLOS, {"spec": test_app.THRESHOLDS})
    async with world.agent(configmap_name=NAME, feature_gates={"BECPUSuppress": True}) as agent:
        value = agent.registry.value
        await world.until_ticking(lambda: world.status())
        begin = value("koord_agent_tick_seconds_count", {})
        await world.seconds(20)
        # Collection and the metric cache.
        assert value("koord_agent_tick_seconds_count", {}) - begin == pytest.approx(10, abs=2)
        assert value("koord_agent_history_disk_failing", {}) == 0
        assert value("koord_agent_peak_models", {}) > 0
        # Informers and runtime hooks.
        listed = {"source": "kubelet", "outcome": "good"}
        assert value("koord_agent_pod_lists_total", listed) >= 6
        assert (world.folder / "hookserver.d/koordlet.json").exists()
        # Strategies, and gates that add up with those of the command line, which wins.
        assert agent.ticks.mode("memory-qos").value == "enforce"
        assert agent.ticks.mode("block-io").value == "off"
        assert "allowed-milli" in agent.ticks.decided.figures
        # The audit.
        assert (await events(agent, 3))[0] == 400
        status, found = await events(agent, 2)
        assert (status, len(found)) == (200, 2)
        assert [path.suffix for path in (world.folder / "elsewhere").iterdir()] == [".jsonl"]


async def test_the_command_line_wins_and_the_rest_comes_from_the_config_map(world):
    put(world, TEXT.replace("FOLDER", str(world.folder)), "other")
    given = {"configmap_name": NAME, "configmap_namespace": "other", "tick_seconds": 5.0}
    async with world.agent(**given, audit={"folder": str(world.folder / "mine")}) as agent:
        value = agent.registry.value
        await world.until_ticking(lambda: agent.ticks.picture)
        begin = value("koord_agent_tick_seconds_count", {})
        await world.seconds(20)
        assert value("koord_agent_tick_seconds_count", {}) - begin == pytest.approx(4, abs=1)
        assert (await events(agent, 4))[0] == 400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tickSecond: 2", "tickSecond; did you mean tickSeconds"),
        ("tickSeconds: 0", "greater than or equal to 0.1"),
        ("tickSeconds: [", "not YAML"),
        ("- 1", "settings are a mapping"),
    ],
    ids=["misspelt", "out of range", "no YAML", "a list"],
)
async def test_a_mistake_is_named_with_its_place(world, text, said):
    put(world, text)
    with pytest.raises(process_settings.SettingsError) as refused:
        async with world.agent(configmap_name=NAME):
            pass
    assert said in str(refused.value)
    assert f"ConfigMap {names.NAMESPACE}/{NAME}" in str(refused.value)


async def test_a_config_map_that_is_not_there_ends_the_start(world):
    with pytest.raises(settings_map.SettingsMapError, match=f"{NAME} cannot be read: .*not found"):
        async with world.agent(configmap_name=NAME):
            pass
    put(world, "tickSeconds: 2", key="other.yaml")
    with pytest.raises(settings_map.SettingsMapError, match=r"has no key settings\.yaml"):
        async with world.agent(configmap_name=NAME):
            pass


async def test_while_the_api_server_is_away_the_last_settings_count(world, monkeypatch):
    place = settings_map.Place(NAME, names.NAMESPACE, world.folder / "state")

    class Away:
        async def get(self, *_):
            raise settings_map.errors.Unreachable("connection refused")

    with pytest.raises(settings_map.SettingsMapError, match="connection refused"):
        await settings_map.text(Away(), place)
    put(world, "tickSeconds: 2")
    async with settings_map.client.Client(world.access, clock=world.clock, user_agent="t") as kube:
        assert await settings_map.text(kube, place) == "tickSeconds: 2"
    chosen = agent_settings.Settings(node_name="n")
    text = await settings_map.text(Away(), place)
    assert process_settings.below(chosen, text, place.told).tick_seconds == 2
    # A copy of another one is none.
    other = settings_map.Place("other", names.NAMESPACE, place.folder)
    with pytest.raises(settings_map.SettingsMapError, match="connection refused"):
        await settings_map.text(Away(), other)


def test_without_a_name_none_is_read_and_sources_keep_their_order():
    chosen = agent_settings.Settings.model_validate(
        {"node_name": "n", "kubelet": {"interval_seconds": 5}, "feature_gates": {"CPUBurst": False}}
    )
    text = (
        "kubelet: {intervalSeconds: 7, timeoutSeconds: 2}\n"
        "featureGates: {CPUBurst: true, CoreSched: true}\n"
    )
    found = process_settings.below(chosen, text, "there")
    assert (found.kubelet.interval_seconds, found.kubelet.timeout_seconds) == (5, 2)
    assert found.feature_gates == {"CPUBurst": False, "CoreSched": True}
    assert process_settings.below(chosen, "", "there") == chosen
