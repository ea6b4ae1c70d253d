"""Which recorded cases of evictions can be played on a small machine, and in which proportion.

A case can be played when its figures could be true of one node at one time and when its answer
does not hang on a few percent.
"""

import copy
import dataclasses
import random

import msgspec

from agent.decide import eviction
from agent.decide.strategies import cpu_evict, memory_evict
from agent.model import slo_settings, state
from api.kubernetes import core
from api.wire import quantity
from domain.cluster_settings import node_slo
from tests.reference import cases, differences_agent

CPU, MEMORY = "cpu", "memory"
USAGES = {
    CPU: ("podCPUUsageCores", "nodeCPUUsageCores"),
    MEMORY: ("podMemoryUsageBytes", "nodeMemoryUsageBytes"),
}
NOISE, DRAWS = 0.12, 12


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """A recorded case in the proportion in which it is played."""

    name: str
    given: dict
    feature: str
    resource: str
    victims: tuple[str, ...]
    """Who left in the recorded round."""
    scale: float

    @property
    def used(self):
        """What every pod uses here, by name."""
        found = self.given[USAGES[self.resource][0]]
        return {name: amount * self.scale for name, amount in found.items()}

    @property
    def system(self):
        """What is used here beside the pods."""
        return self.given[USAGES[self.resource][1]] * self.scale - sum(self.used.values())

    @property
    def capacity(self):
        """What the node has here."""
        whole = _milli(self.given, self.resource) * self.scale
        if self.resource == CPU:
            return {CPU: f"{round(whole)}m", MEMORY: "8Gi"}
        return {CPU: "8", MEMORY: str(round(whole / 1000))}

    @property
    def ends(self):
        """Whether the node is well below its threshold once the recorded victims are gone."""
        if self.feature == "BECPUEvict":
            return True
        left = self.given[USAGES[self.resource][1]] * self.scale
        left -= sum(self.used[name] for name in self.victims)
        threshold = self.given["thresholdStrategy"].get(f"{self.resource}EvictThresholdPercent", 0)
        whole = _milli(self.given, self.resource) * self.scale / 1000
        return left * (1 + NOISE / 2) < whole * threshold / 100

    @property
    def guarded(self):
        """The pods whose eviction is refused."""
        return tuple(self.given.get("evictFails", ()))


def first(resource, feature, total, *, refused=False):
    """Return the first playable case of a feature, so scaled that the node uses so much in total.

    Those come first after whose victims all is well, and then those with many pods.
    """
    found = [
        Scene(
            case.name,
            case.given,
            feature,
            resource,
            tuple(one["pod"] for one in case.expected["evicted"]),
            total / case.given[USAGES[resource][1]],
        )
        for case in cases.read(f"{resource}_evict")
        if _of_feature(case, feature)
        and _possible(case.given, resource)
        and bool(_refused(case, feature)) is refused
    ]
    found.sort(key=lambda scene: (not scene.ends, -len(scene.given["pods"])))
    return next(scene for scene in found if _firm(scene))


def starved(limit):
    """Return a case of our own: best effort gets a quarter of what it requests.

    No recorded one can be played, for there the requests of the pods and of best effort as a whole
    have nothing to do with each other.
    """
    used = {"busy": 0.6, "calm": 0.2, "later": 0.2}
    settings = {
        "enable": True,
        "cpuEvictBESatisfactionLowerPercent": 30,
        "cpuEvictBESatisfactionUpperPercent": 55,
        "cpuEvictTimeWindowSeconds": 6,
    }
    asked = {"kubernetes.io/batch-cpu": str(round(limit * 4000 / 3))}
    pods = [_pod(name, 6000 if name == "later" else 5000, asked) for name in used]
    shares = {name: share * limit for name, share in used.items()}
    given = _given(CPU, "2", pods, shares, limit, settings)
    return Scene("starved", given, "BECPUEvict", CPU, ("busy",), 1.0)


def one_after_another(total):
    """Return a case of our own: two pods have to leave, of which each leaves alone."""
    used = {"first": total * 0.3, "second": total * 0.3, "third": total * 0.2}
    settings = {
        "enable": True,
        "memoryEvictThresholdPercent": 50,
        "memoryEvictLowerPercent": 45,
        "evictEnabledPriorityThreshold": 5999,
    }
    pods = [_pod(name, priority) for name, priority in zip(used, (5000, 5001, 5002), strict=True)]
    given = _given(MEMORY, str(total), pods, used, total * 0.95, settings)
    return Scene("one after another", given, "MemoryEvict", MEMORY, ("first", "second"), 1.0)


def _given(resource, capacity, pods, used, total, settings):
    of_pods, of_node = USAGES[resource]
    whole = {CPU: "8", MEMORY: "8Gi", resource: capacity}
    node = {"metadata": {"name": "n"}, "status": {"capacity": whole, "allocatable": whole}}
    return {
        "node": node,
        "pods": pods,
        of_pods: used,
        of_node: total,
        "thresholdStrategy": settings,
    }


def _pod(name, priority, asked=None):
    labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/eviction-enabled": "true"}
    resources = {"requests": asked, "limits": asked} if asked else {}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"priority": priority, "containers": [{"name": "c0", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def _of_feature(case, feature):
    """Tell whether this feature alone made pods leave, in a node that was quiet before."""
    found = {
        one["message"].partition(",")[0].rpartition(" ")[2] for one in case.expected["evicted"]
    }
    return found == {feature} and not case.given.get("alreadyEvicted")


def _possible(given, resource):
    of_pods, of_node = USAGES[resource]
    used = given.get(of_pods, {})
    running = all(pod["status"].get("phase") in ("Running", "Pending") for pod in given["pods"])
    known = len(used) == len(given["pods"]) > 1
    return running and known and sum(used.values()) <= given.get(of_node, 0)


def _refused(case, feature):
    candidates = case.expected["tasks"][feature]["sortedPods"]
    return set(case.given.get("evictFails", ())) & set(candidates)


def _firm(scene):
    """Tell whether the agent's own decision is the recorded one, whatever the noise."""
    rng = random.Random(1)
    draws = (_noisy(scene.given, scene.resource, rng) for _ in range(DRAWS))
    return all(
        tuple(decide(given, scene.resource, scene.feature)) == scene.victims
        for given in (scene.given, *draws)
    )


def _noisy(given, resource, rng):
    of_pods, of_node = USAGES[resource]
    noisy = copy.deepcopy(given)
    for name in noisy[of_pods]:
        noisy[of_pods][name] *= 1 + rng.uniform(-NOISE, NOISE)
    # The node's own figure is the sum of all, so its noise is less.
    noisy[of_node] *= 1 + rng.uniform(-NOISE / 4, NOISE / 4)
    return noisy


def decide(given, resource, feature):
    """Return whom the agent's own decision would let go, with settings as a NodeSLO gives them."""
    spec = {"resourceUsedThresholdWithBE": given["thresholdStrategy"]}
    settings = slo_settings.read(node_slo.of_spec(spec))
    picture = _picture(given, resource)
    if resource == MEMORY:
        answers = memory_evict.tasks(picture, settings.memory_eviction)
        tasks = memory_evict.evict(answers, [feature])
    else:
        window = cpu_evict.Window(node=given.get("nodeCPUUsageCores"))
        answers = cpu_evict.tasks(picture, settings.cpu_eviction, window)
        tasks = cpu_evict.evict(answers, [feature])
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in given["pods"]}
    refused = {uids[name] for name in given.get("evictFails", ())}
    return [one.name for one in eviction.pick(tasks, (), refused)]


def _picture(given, resource):
    of_pods, of_node = USAGES[resource]
    pods = []
    for body in given["pods"]:
        used = given[of_pods][body["metadata"]["name"]]
        usage = state.Usage(cpu=used) if resource == CPU else state.Usage(memory=int(used))
        pods.append(differences_agent.pod_state(body, usage=usage))
    memory = int(given[of_node]) if resource == MEMORY else None
    node = msgspec.convert(given["node"], core.Node)
    return state.NodeState(at=0, node=node, usage=state.Usage(memory=memory), pods=tuple(pods))


def _milli(given, resource):
    return quantity.milli(given["node"]["status"]["capacity"][resource])
