"""The seldom hooks in a whole agent on a generated host: what is looked at reaches the files."""

import json

import msgspec
import pytest

from agent.decide import planner
from agent.hooks import resctrl
from agent.loop import ticks
from agent.model import state, strategy_settings
from agent.observe import observation
from api.koordinator.metadata import qos
from process.runtime import clock as clocks
from process.runtime import metrics

TERWAY = strategy_settings.Strategies(
    classes=strategy_settings.Classes(
        network={qos.QoS.LS: strategy_settings.Network(True, egress_limit=50)},
        network_policy="terway-qos",
    ),
    system=strategy_settings.System(bandwidth=8_000),
)
IDENTITY = strategy_settings.Strategies(
    classes=strategy_settings.Classes(
        cpu={
            qos.QoS.LS: strategy_settings.Cpu(True, identity=2),
            qos.QoS.BE: strategy_settings.Cpu(True, identity=-1),
        }
    )
)


def agent(host, folder, name, gate, **roots):
    """A loop that enforces one strategy, and looks where it is told."""
    host.observer.close()
    changed = msgspec.structs.replace(host.observer.roots, **roots)
    host.observer = observation.Observer(changed, 1.0)
    habits = ticks.Habits(
        folder / "state",
        writing=True,
        gates=frozenset({gate}),
        modes={name: planner.Mode.ENFORCE},
    )
    figures = ticks.Figures(metrics.Registry())
    return ticks.Ticks(host.observer, lambda: host.known, clocks.ManualClock(), figures, habits)


@pytest.fixture
def busy(host):
    host.add("online", "Burstable", 1000)
    host.add("batch", "BestEffort", 1000)
    host.know(thresholds=state.Thresholds(enable=False))
    return host


def test_terway_is_told_while_it_shall_be(busy, tmp_path):
    folder = tmp_path / "qos"
    folder.mkdir()
    loop = agent(busy, tmp_path, "terway-qos", "TerwayQoS", terway=str(folder))
    busy.know(enforced=TERWAY)
    loop.tick()
    assert loop.problem is None
    assert "offline_l1_tx_bps_max 500\n" in (folder / "global_bps_config").read_text()
    told = json.loads((folder / "pod.json").read_text())
    assert {uid: one["prio"] for uid, one in told.items()} == {"online": 1, "batch": 2}
    assert told["batch"]["cgroupDir"].endswith(loop.picture.pods[1].group)
    busy.know(enforced=strategy_settings.Strategies())
    loop.tick()
    assert list(folder.iterdir()) == []
    busy.know(enforced=TERWAY)
    loop.tick()
    assert len(list(folder.iterdir())) == 2
    loop.put_back("uninstall")
    loop.stop()
    assert list(folder.iterdir()) == []


def test_groups_of_pods_that_nobody_knows_have_the_rank_of_their_class(busy, tmp_path):
    root = busy.tree.cgroup / "cpu" if busy.tree.version == 1 else busy.tree.cgroup
    busy.tree.add_pod("lost", "BestEffort", ["c-lost"])
    for folder in [one for one in root.rglob("*") if one.is_dir()]:
        (folder / "cpu.bvt_warp_ns").write_text("0\n")
    loop = agent(busy, tmp_path, "group-identity", "GroupIdentity")
    busy.know(enforced=IDENTITY)
    loop.tick()

    def rank(uid):
        (found,) = root.rglob(f"*pod{uid}.slice/cpu.bvt_warp_ns")
        return found.read_text().strip()

    assert {uid: rank(uid) for uid in ("online", "batch", "lost")} == {
        "online": "2",
        "batch": "-1",
        "lost": "-1",
    }
    loop.put_back("uninstall")
    loop.stop()
    assert rank("lost") == "0"


@pytest.mark.parametrize("mounting", [True, False])
def test_a_cache_is_mounted_only_where_that_is_allowed(busy, tmp_path, mounting):
    (busy.tree.sys / "fs/resctrl").mkdir(parents=True)
    (busy.tree.proc / "cpuinfo").write_text("vendor_id : GenuineIntel\nflags : cat_l3 mba\n")
    agent(busy, tmp_path, "cache", "RdtResctrl", mounting=mounting)
    cache = {qos.QoS.BE: strategy_settings.Cache(True, 0, 30)}
    busy.know(enforced=strategy_settings.Strategies(classes=strategy_settings.Classes(cache=cache)))
    picture = busy.look()
    assert picture.kernel.mountable_caches is mounting
    wanted = [edit.role.value for edit in resctrl.decide(picture, cache).wanted]
    assert wanted == (["resctrl-mount"] if mounting else [])


def test_the_network_is_looked_at_only_for_those_who_share_it(busy, tmp_path):
    busy.know(enforced=TERWAY)
    agent(busy, tmp_path, "terway-qos", "TerwayQoS")
    assert busy.look().network is None
    agent(busy, tmp_path, "network-qos", "TCNetworkQoS")
    assert busy.look().network is not None
