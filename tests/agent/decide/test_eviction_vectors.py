"""Who is evicted, in which order and how many, as recorded."""

import re

import msgspec
import pytest

from agent.decide import eviction
from agent.decide.strategies import cpu_evict, memory_evict
from agent.model import state, strategy_settings
from api.kubernetes import core
from tests.reference import cases, differences_agent


def bounds(written, field):
    return strategy_settings.Bounds(
        written.get(f"{field}ThresholdPercent"), written.get(f"{field}LowerPercent")
    )


def cpu_settings(written):
    satisfaction = "cpuEvictBESatisfaction"
    return strategy_settings.CpuEviction(
        used=bounds(written, "cpuEvict"),
        requested=bounds(written, "cpuAllocatableEvict"),
        satisfaction=strategy_settings.Bounds(
            written.get(f"{satisfaction}UpperPercent"), written.get(f"{satisfaction}LowerPercent")
        ),
        best_effort_usage=written.get("cpuEvictBEUsageThresholdPercent", 90),
        window_seconds=written.get("cpuEvictTimeWindowSeconds"),
        by_allocatable=written.get("cpuEvictPolicy") == "evictByAllocatable",
        highest_priority=written.get("evictEnabledPriorityThreshold"),
        highest_priority_requested=written.get("allocatableEvictPriorityThreshold"),
    )


def memory_settings(written):
    return strategy_settings.MemoryEviction(
        used=bounds(written, "memoryEvict"),
        requested=bounds(written, "memoryAllocatableEvict"),
        highest_priority=written.get("evictEnabledPriorityThreshold"),
        highest_priority_requested=written.get("allocatableEvictPriorityThreshold"),
    )


def series(given):
    if not given:
        return cpu_evict.Series()
    return cpu_evict.Series(given["avgMilli"], given["lastMilli"], given["count"])


def picture(given):
    cpu, memory = given.get("podCPUUsageCores", {}), given.get("podMemoryUsageBytes", {})
    pods = []
    for raw in given["pods"]:
        name = raw["metadata"]["name"]
        usage = state.Usage(cpu=cpu.get(name), memory=memory.get(name))
        pods.append(differences_agent.pod_state(raw, usage=usage))
    return state.NodeState(
        at=0,
        node=msgspec.convert(given["node"], core.Node),
        usage=state.Usage(memory=given.get("nodeMemoryUsageBytes")),
        pods=tuple(pods),
    )


def cpu(given):
    used = given["beCPU"]
    window = cpu_evict.Window(
        given["metricCollectIntervalSeconds"],
        given.get("nodeCPUUsageCores"),
        series(used.get("usage")),
        series(used.get("request")),
        series(used.get("realLimit")),
    )
    return cpu_evict.tasks(picture(given), cpu_settings(given["thresholdStrategy"]), window)


def memory(given):
    return memory_evict.tasks(picture(given), memory_settings(given["thresholdStrategy"]))


def said(answer):
    if isinstance(answer, eviction.Idle):
        return cause(answer.why, OURS) if answer.misconfigured else "idle"
    victims = [pod.pod.metadata.name for pod in answer.victims]
    return dict(answer.to_release), victims, answer.target.value, answer.feature


def recorded(task):
    if "error" in task:
        return cause(task["error"].partition("err=")[2], THEIRS)
    if "skip" in task:
        return "idle"
    feature = task["reason"].removeprefix("trigger by koordlet feature ")
    return task["toRelease"], task["sortedPods"] or [], task["releaseTarget"], feature


# What is wrong with settings, in both wordings: which kind of fault, and of what.
OURS = (
    ("unset", r"(\w+) is not set"),
    ("negative", r"\w+ThresholdPercent (-\d+) is below 0"),
    ("lower", r"\w+LowerPercent (-?\d+) is not below \w+ThresholdPercent (-?\d+)"),
    ("production", r"allocatableEvictPriorityThreshold (\d+) covers production"),
    ("range", r"cpuEvictBESatisfaction(\w+Percent) (-?\d+) is not in"),
)
THEIRS = (
    ("unset", r"(\w+)(?: or \w+)? not config"),
    ("unset", r"threshold percent is (nil)"),
    ("negative", r"threshold percent\((-\d+)\) should"),
    ("lower", r"lower percent\((-?\d+)\) should less than threshold percent\((-?\d+)\)"),
    ("production", r"priorityThresholdPercent\((\d+)\) should less than"),
    ("range", r"CPUEvictBESatisfaction(\w+Percent)\((-?\d+)\)"),
)
SAME = {"nil": "memoryevictthresholdpercent"}
# Of two that are missing together, the reference names both and we the first that is missing.
PAIR = "cpuevictbesatisfaction"


def cause(text, wordings):
    """Reduce a sentence to the kind of fault and what it names."""
    for kind, pattern in wordings:
        if match := re.search(pattern, text):
            found = [SAME.get(word, word.casefold()) for word in match.groups()]
            return kind, *(PAIR if word.startswith(PAIR) else word for word in found)
    raise AssertionError(f"an unknown fault: {text}")


RESOURCES = {"cpu_evict": (cpu, cpu_evict), "memory_evict": (memory, memory_evict)}


@pytest.mark.vectors
@pytest.mark.parametrize("file", RESOURCES)
def test_what_is_wanted_and_of_whom(file):
    judge, module = RESOURCES[file]

    def answer(case):
        found = judge(case.given)
        return {name: said(found[name]) for name in module.FEATURES}

    def expected(case):
        return {name: recorded(task) for name, task in case.expected["tasks"].items()}

    cases.check(file, answer, expected, differences_agent.of(f"{file}.tasks"))


@pytest.mark.vectors
@pytest.mark.parametrize("file", RESOURCES)
def test_who_leaves_in_one_round(file):
    judge, module = RESOURCES[file]

    def uids(case, key):
        pods = {p["metadata"]["name"]: p["metadata"]["uid"] for p in case.given["pods"]}
        return {pods[name] for name in case.given.get(key, ())}

    def answer(case):
        given = case.given
        enabled = [gate for gate, on in given["featureGates"].items() if on]
        tasks = module.evict(judge(given), enabled) if given["thresholdStrategy"]["enable"] else ()
        gone, refused = uids(case, "alreadyEvicted"), uids(case, "evictFails")
        return [(e.name, e.feature) for e in eviction.pick(tasks, gone, refused)]

    def expected(case):
        return [(e["pod"], feature_of(e["message"])) for e in case.expected["evicted"]]

    cases.check(file, answer, expected, differences_agent.of(f"{file}.round"))


def feature_of(message):
    return message.removeprefix("trigger by koordlet feature ").partition(",")[0]
