"""The configuration map while it changes."""

from api import names, resources


def threshold(world, node="n1"):
    spec = world.stored(resources.NODE_SLOS, node)["spec"]
    return spec["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"]


def config(percent):
    return {"clusterStrategy": {"cpuSuppressThresholdPercent": percent}}


async def test_a_change_reaches_every_node(world) -> None:
    await world.node("n1")
    await world.node("n2")
    async with world.manager():
        assert threshold(world) == 65
        await world.configure(resource_threshold_config=config(50))
        await world.until(lambda: threshold(world, "n1") == threshold(world, "n2") == 50)


async def test_bad_payload_keeps_what_held_and_is_told(world) -> None:
    await world.node("n1")
    await world.configure(resource_threshold_config=config(50))
    async with world.manager() as app:
        await world.configure(
            resource_threshold_config="{", cpu_burst_config={"clusterStrategy": {"policy": "auto"}}
        )
        await world.until(lambda: "SLOCfgUnmarshalFailed" in world.reasons(names.CONFIG_MAP_SLO))
        refused = {"key": "resource-threshold-config"}
        assert app.registry.value("koord_manager_settings_refused", refused) == 1
        slo = lambda: world.stored(resources.NODE_SLOS, "n1")["spec"]  # noqa: E731
        await world.until(lambda: slo()["cpuBurstStrategy"]["policy"] == "auto")
        assert threshold(world) == 50
        await world.configure(resource_threshold_config=config(40))
        await world.until(lambda: threshold(world) == 40)
        assert app.registry.value("koord_manager_settings_refused", refused) == 0


async def test_nothing_is_lent_or_measured_before_colocation_was_readable_once(world) -> None:
    await world.node("n1")
    await world.configure(colocation_config="{")
    async with world.manager() as app:
        reasons = world.reasons(names.CONFIG_MAP_SLO)
        assert reasons == ["ColocationCfgUnmarshalFailed"]
        assert not world.stored(resources.NODE_METRICS, "n1")
        # What nodes enforce does not depend on it.
        assert threshold(world) == 65
        place = {"key": "colocation-config", "path": "colocation-config", "effect": "kept"}
        assert app.registry.value("koord_manager_settings_faults", place) == 1
        await world.configure(colocation_config={"enable": True})
        await world.until(lambda: world.stored(resources.NODE_METRICS, "n1"))
        assert app.registry.value("koord_manager_settings_faults", place) is None


async def test_what_was_never_readable_does_not_undo_what_a_leader_before_has_read(world) -> None:
    await world.node("n1")
    await world.configure(resource_threshold_config=config(50))
    async with world.manager():
        assert threshold(world) == 50
    await world.configure(
        resource_threshold_config=config(101),
        cpu_burst_config={"clusterStrategy": {"policy": "auto"}},
    )
    async with world.manager() as app:
        slo = lambda: world.stored(resources.NODE_SLOS, "n1")["spec"]  # noqa: E731
        await world.until(lambda: slo()["cpuBurstStrategy"]["policy"] == "auto")
        assert threshold(world) == 50
        place = {
            "key": "resource-threshold-config",
            "path": "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent",
            "effect": "kept",
        }
        assert app.registry.value("koord_manager_settings_faults", place) == 1
        # A new node has no word of anybody, so the default holds there.
        await world.node("n2")
        await world.until(lambda: world.stored(resources.NODE_SLOS, "n2"))
        assert threshold(world, "n2") == 65


async def test_removing_the_map_changes_nothing_until_the_next_start(world) -> None:
    await world.node("n1")
    await world.configure(resource_threshold_config=config(50))
    async with world.manager():
        await world.admin.delete(resources.CONFIG_MAPS, names.CONFIG_MAP_SLO, names.NAMESPACE)
        await world.node("n2")
        await world.until(lambda: world.stored(resources.NODE_SLOS, "n2"))
        assert threshold(world, "n2") == 50
    async with world.manager():
        await world.until(lambda: threshold(world, "n1") == 65)


async def test_map_in_another_namespace(world) -> None:
    await world.node("n1")
    await world.configure(resource_threshold_config=config(50))
    await world.admin.create(
        resources.CONFIG_MAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "mine"},
            "data": {"resource-threshold-config": '{"clusterStrategy":{"enable":true}}'},
        },
        "default",
    )
    async with world.manager(config_namespace="default", config_name="mine"):
        assert threshold(world) == 65
        spec = world.stored(resources.NODE_SLOS, "n1")["spec"]
        assert spec["resourceUsedThresholdWithBE"]["enable"] is True


async def test_ignored_entries_are_told(world) -> None:
    entry = {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}
    await world.configure(resource_threshold_config={"nodeStrategies": [entry]})
    async with world.manager():
        await world.until(lambda: "EntryIgnored" in world.reasons(names.CONFIG_MAP_SLO))
