"""The manager as users see it, over HTTP: elected, configured, observed."""

import aiohttp
import pytest

from api import names, resources
from manager.settings import LeaderElectionSettings, Settings
from process.configuration import features, sources
from process.configuration import settings as process_settings
from process.runtime import supervise

ELECTED = {"leader_election": LeaderElectionSettings()}


async def test_only_one_of_two_works_and_the_other_takes_over(world) -> None:
    async with world.manager(**ELECTED) as second_life:
        await world.until(lambda: second_life.leadership.leading)
        async with world.manager(**ELECTED) as standby:
            await world.node("n1")
            await world.until(lambda: world.stored(resources.NODE_SLOS, "n1"))
            assert not standby.leadership.leading
            assert (
                standby.registry.value("koord_lease_leading", {"lease": "koordinator-manager"}) == 0
            )
            assert "another replica leads" in standby.health.warnings()["leader"]
            lease = world.stored(resources.LEASES, "koordinator-manager")
            assert lease["metadata"]["namespace"] == names.NAMESPACE


async def test_takes_over_when_the_leader_stops(world) -> None:
    async with world.manager(**ELECTED) as leader:
        await world.until(lambda: leader.leadership.leading)
        standby = world.manager(**ELECTED)
        following = await standby.__aenter__()
        try:
            assert not following.leadership.leading
            await leader.supervisor.stop()
            await world.node("n1")
            for _ in range(20):
                await world.clock.advance(1.0)
                assert not (leader.leadership.leading and following.leadership.leading)
            assert following.leadership.leading
            await world.until(lambda: world.stored(resources.NODE_METRICS, "n1"))
        finally:
            await standby.__aexit__(None, None, None)


async def test_lease_may_live_elsewhere_under_another_name(world) -> None:
    election = LeaderElectionSettings(name="other", namespace="default")
    async with world.manager(leader_election=election) as app:
        await world.until(lambda: app.leadership.leading)
        assert world.stored(resources.LEASES, "other")["metadata"]["namespace"] == "default"


async def test_metrics_and_health_are_served(world) -> None:
    await world.node("n1")
    async with world.manager() as app, aiohttp.ClientSession() as session:
        async with session.get(f"{app.health_url}/metrics") as answer:
            text = await answer.text()
        assert 'koord_manager_writes_total{resource="nodeslos",write="apply"} 1.0' in text
        assert 'koord_controller_reconciles_total{controller="nodeslo"' in text
        async with session.get(f"{app.health_url}/readyz") as answer:
            assert answer.status == 200


async def test_all_that_need_pods_share_one_list_and_watch(world) -> None:
    await world.node("n1")
    await world.pod("p", "n1", "1")
    follows = {"ColocationProfileController": True}
    async with world.manager(feature_gates=follows) as app:
        assert app.registry.value("koord_kube_lists_total", {"resource": "pods"}) == 1
        assert app.registry.value("koord_kube_store_objects", {"resource": "pods"}) == 1


async def test_profiles_and_quotas_share_one_list_and_watch_of_elastic_quotas(world) -> None:
    async with world.manager() as app:
        listed = {"resource": resources.ELASTIC_QUOTAS.review_name()}
        assert app.registry.value("koord_kube_lists_total", listed) == 1


async def test_only_the_controllers_that_are_asked_for_run(world) -> None:
    await world.node("n1")
    async with world.manager(controllers=("*", "-nodeslo")):
        assert world.stored(resources.NODE_METRICS, "n1")
        assert not world.stored(resources.NODE_SLOS, "n1")


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param(("*",), (True, True, True), id="all"),
        pytest.param(("nodeslo",), (False, True, False), id="one"),
        pytest.param(("*", "-nodeslo"), (True, False, True), id="all-but-one"),
        pytest.param(("-nodeslo",), (False, False, False), id="none-named"),
        pytest.param(("nodeslo", "-nodeslo"), (False, True, False), id="first-mention-counts"),
    ],
)
def test_controllers_by_name(listed, expected) -> None:
    settings = Settings(controllers=listed)
    assert tuple(map(settings.is_on, ("nodemetric", "nodeslo", "noderesource"))) == expected


def load(*flags: str) -> Settings:
    return process_settings.load(
        Settings, file=None, environ={}, prefix="KOORD_MANAGER", flags=flags
    )


def test_settings_from_flags() -> None:
    settings = load("--configNamespace=config", "--leaderElection.name=x", "--health.port=9")
    assert settings.config_namespace == "config"
    assert settings.leader_election.name == "x"
    assert (settings.health.host, settings.health.port) == ("0.0.0.0", 9)
    assert load().health.port == 8080


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        pytest.param("--configNamespce=x", "configNamespace", id="misspelt"),
        pytest.param('--controllers=["nodeslos"]', "nodeslos is no controller", id="controller"),
        pytest.param("--workers=0", "workers", id="workers"),
    ],
)
def test_bad_settings_name_the_key(flag: str, hint: str) -> None:
    with pytest.raises((process_settings.SettingsError, sources.SourceError), match=hint):
        load(flag)


async def test_unknown_feature_gate_is_refused(world) -> None:
    with pytest.raises(features.GateError, match="Telepathy"):
        async with world.manager(feature_gates={"Telepathy": True}):
            pass


async def test_a_failed_task_ends_the_process(world) -> None:
    async def ends() -> None:
        """Return, which an eternal task must not."""

    async def managing() -> None:
        async with world.manager() as app:
            app.supervisor.start("planted", ends)
            await app.stopped()

    with pytest.raises(supervise.TaskError, match="planted"):
        await managing()
