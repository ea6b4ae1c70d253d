"""Best effort stays limited while its strategy is in force, however agents come and go.

Agents are stopped, killed and started again with the API server away, the kubelet silent, parts of
the host unreadable and parts of what an earlier agent had kept lost; in virtual time.
"""

import json
import os
import random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import settings as agent_settings
from agent.assembly import feature_gates, parts
from agent.informers import kubelet_client, live_switch_informer, node_objects
from agent.observe.node import boot
from agent.store import last_enforced
from api import names
from api.kubernetes import core
from kube.client import wire
from kube.informers import store
from process.configuration import features
from process.runtime import metrics
from simulator.kubelet import nodefs

GIB = 1 << 30
NODE = "node-1"
FULL = "0-7"
FEW = 6
MOST = int(os.environ.get("KOORD_FUZZ", FEW * 100)) // 100
pytestmark = pytest.mark.timeout(max(120, MOST * 4))
POLICIES = ("cfsQuota", "cpuset")
AMOUNTS = {"cpu": "8", "memory": "16Gi"}
KEPT = ("node", "nodeslo", "switches", "pods", "kubelet")
HIDDEN = ("proc/stat", "proc/meminfo", "sys/devices/system/cpu")
CLASS = "kubepods.slice/kubepods-besteffort.slice"


class Clock:
    """Virtual time, the same for the wall and for what has passed."""

    def __init__(self):
        self.at = 1000.0

    def now(self):
        return 1.7e9 + self.at

    def monotonic(self):
        return self.at


class ApiServer:
    """What it holds about one node, and whether it answers."""

    def __init__(self, policy):
        self.away = False
        self.version = 10
        self.objects = {}
        self.policy = policy
        self.put(
            "Node",
            {
                "metadata": {"name": NODE},
                "status": dict.fromkeys(("capacity", "allocatable"), AMOUNTS),
            },
        )
        self.strategy(50)

    def put(self, kind, body):
        self.version += 1
        meta = {**body["metadata"], "uid": f"uid-{kind}", "resourceVersion": str(self.version)}
        self.objects[kind] = {**body, "metadata": meta}

    def strategy(self, percent):
        strategy = {
            "enable": True,
            "cpuSuppressThresholdPercent": percent,
            "cpuSuppressPolicy": self.policy,
        }
        self.put(
            "NodeSLO",
            {
                "metadata": {"name": NODE, "generation": self.version},
                "spec": {"resourceUsedThresholdWithBE": strategy},
            },
        )


class Informers:
    """The stores of one agent, filled as its reflectors do."""

    def __init__(self, api):
        self._api = api
        self._stores = {}
        self.heard = False

    def add(self, projection):
        found = store.Store()
        self._stores[projection.resource.kind] = (
            wire.Reader(projection.type, projection.project),
            found,
        )
        return found

    def listed(self):
        self.heard = True
        for kind, (reader, found) in self._stores.items():
            raw = self._api.objects.get(kind)
            seen = set()
            if raw is not None:
                item = reader.event(json.dumps({"type": "ADDED", "object": raw}).encode()).item
                seen.add(item.meta.key)
                found.accept(item.meta, item.value)
            found.finish(seen, self._api.version)

    def told(self, kind):
        reader, found = self._stores[kind]
        item = reader.event(
            json.dumps({"type": "MODIFIED", "object": self._api.objects[kind]}).encode()
        ).item
        found.put(item.meta, item.value)


class Kubelet:
    """Names the pods of the node once it has answered."""

    source, problem = "kubelet", ""

    def __init__(self):
        self.pods, self.age = (), None

    async def get(self, _path):
        raise kubelet_client.KubeletError("not asked here")

    def show(self, figures):
        pass

    def start(self, supervisor):
        pass

    def hurry(self):
        pass


class Life:
    """A node, its API server and its kubelet, and one agent after another."""

    def __init__(self, folder, policy, version):
        self.tree = nodefs.HostTree(folder / "host", 8, 16 * GIB, version, "systemd")
        self.api, self.clock, self.rng = ApiServer(policy), Clock(), random.Random(1)
        self.policy, self.folder = policy, folder / "state"
        self.pods = tuple(
            self._pod(*one) for one in (("online", "Burstable"), ("batch", "BestEffort"))
        )
        self.hidden = set()
        self.agent = self.kubelet = self.informers = None
        self.opened = None
        self.start()
        self.hear()
        self.seconds(5)
        self.opened = []
        assert self.limited()

    def _pod(self, uid, quality):
        self.tree.add_pod(uid, quality, [f"c-{uid}"])
        status = {
            "phase": "Running",
            "qosClass": quality,
            "containerStatuses": [{"name": "app", "containerID": f"containerd://c-{uid}"}],
        }
        labels = {"koordinator.sh/qosClass": "BE" if quality == "BestEffort" else "LS"}
        raw = {
            "metadata": {"name": uid, "uid": uid, "labels": labels},
            "spec": {"containers": [{"name": "app"}]},
            "status": status,
        }
        return msgspec.convert(raw, core.Pod)

    def limited(self):
        """Whether the class may not use the whole node."""
        root = self.tree.cgroup
        if self.policy == "cpuset":
            folder = root / "cpuset" if self.tree.version == 1 else root
            return (folder / CLASS / "cpuset.cpus").read_text().strip() not in ("", FULL)
        if self.tree.version == 1:
            return int((root / "cpu" / CLASS / "cpu.cfs_quota_us").read_text()) > 0
        return not (root / CLASS / "cpu.max").read_text().startswith("max")

    def start(self):
        host = {
            "proc": self.tree.proc,
            "sys": self.tree.sys,
            "cgroup": self.tree.cgroup,
            "state": self.folder,
        }
        chosen = agent_settings.Settings.model_validate(
            {"node_name": NODE, "mode": "enforce", "host": host}
        )
        memory = last_enforced.Remembered(self.folder, boot.boot_id(str(self.tree.proc)))
        self.informers, self.kubelet = Informers(self.api), Kubelet()
        watched = node_objects.Watched(self.informers, NODE, memory)
        enabled = feature_gates.enabled(features.Gates(feature_gates.GATES, {}))
        self.agent = parts.Parts(
            chosen, self.clock, watched, self.kubelet, metrics.Registry(), enabled
        )
        board = live_switch_informer.Switchboard(
            self.informers, names.NAMESPACE, self.agent.loop.names, memory
        )
        self.agent.obey(board)

    def stop(self):
        self.agent.loop.stop()

    def hear(self):
        """Let the kubelet and, unless it is away, the API server be heard."""
        self.kubelet.pods, self.kubelet.age = self.pods, 0.0
        if not self.api.away:
            self.informers.listed()

    def seconds(self, count, each=1.0):
        for _ in range(count):
            self.tree.set_load("online", self.rng.choice((200, 2000, 7000)), GIB)
            self.tree.set_load("batch", self.rng.choice((0, 6000)), GIB)
            self.tree.advance(each)
            self.clock.at += each
            self.agent.loop.tick()
            self.agent.after_tick()
            if self.opened is not None and not self.limited():
                self.opened.append(self.agent.loop.decided.reason)

    # -- what may happen -------------------------------------------------------------------------

    def work(self):
        self.seconds(3)

    def wait(self):
        self.seconds(20)

    def crawl(self):
        """Ten minutes in which hardly anything is looked at, so that no figure is fresh."""
        self.seconds(15, each=40.0)

    def restart(self):
        """Stopped or killed: in both cases the lock is all that goes."""
        self.stop()
        self.start()
        self.seconds(2)

    def absence(self):
        self.stop()
        self.clock.at += 100.0
        self.tree.advance(100.0)
        self.start()
        self.seconds(2)

    def overlap(self):
        """The next agent is there before the one before it has ended."""
        before = self.agent.loop
        self.start()
        self.seconds(2)
        before.stop()
        self.seconds(2)

    def outage(self):
        self.api.away = True

    def back(self):
        self.api.away = False
        self.hear()

    def news(self):
        self.hear()

    def no_pods(self):
        self.kubelet.pods, self.kubelet.age = (), 0.0

    def change(self):
        """Another threshold; followers get it."""
        self.api.strategy(self.rng.randint(30, 60))
        if not self.api.away and self.informers.heard:
            self.informers.told("NodeSLO")

    def garble(self):
        """The NodeSLO comes to say something that no agent can read."""
        broken = {"resourceUsedThresholdWithBE": {"enable": "perhaps"}}
        self.api.put("NodeSLO", {**self.api.objects["NodeSLO"], "spec": broken})
        if not self.api.away and self.informers.heard:
            self.informers.told("NodeSLO")

    def lose(self):
        """Some of what an earlier agent had kept is lost or cut off."""
        for name in self.rng.sample(KEPT, 3):
            path = self.folder / "last-known" / name
            if path.is_file() and self.rng.random() < 0.5:
                path.unlink()
            elif path.is_file():
                path.write_bytes(path.read_bytes()[:-3])

    def hide(self):
        """A part of the host cannot be read any more."""
        path = self.tree.cgroup.parent / self.rng.choice(HIDDEN)
        if path.exists():
            path.rename(path.with_name(path.name + ".hidden"))

    def show(self):
        for path in self.tree.cgroup.parent.rglob("*.hidden"):
            path.rename(path.with_name(path.name.removesuffix(".hidden")))


ACTIONS = [
    *("work", "wait", "crawl", "restart", "absence", "overlap", "outage", "back", "news"),
    *("no_pods", "change", "garble", "lose", "hide", "show"),
]


HISTORIES = {
    "no figures for long": ["restart", "back", "crawl"],
    "no processors": ["hide", "restart", "back", "wait"],
    "unreadable": ["garble", "wait", "restart", "back", "wait"],
    "unreadable and forgotten": ["lose", "lose", "lose", "garble", "restart", "back", "wait"],
    "no pods": ["restart", "no_pods", "crawl", "back", "wait"],
    "an outage": ["outage", "restart", "crawl", "restart", "wait", "back", "wait"],
    "two at once": ["overlap", "wait", "outage", "overlap", "wait"],
    "a change while nobody watched": ["outage", "change", "absence", "wait", "back", "wait"],
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_the_class_stays_limited(tmp_path, policy, history):
    lived(tmp_path, policy, 1, history)


@pytest.mark.parametrize("policy", POLICIES)
@settings(
    max_examples=MOST,
    deadline=None,
    derandomize=MOST == FEW,
    suppress_health_check=list(HealthCheck),
)
@given(
    version=st.sampled_from([1, 2]),
    history=st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=20),
)
def test_the_class_stays_limited_in_any_history(tmp_path_factory, policy, version, history):
    lived(tmp_path_factory.mktemp("life"), policy, version, history)


def lived(folder, policy, version, history):
    life = Life(folder, policy, version)
    try:
        for action in history:
            getattr(life, action)()
            assert life.opened == [], action
    finally:
        life.stop()
