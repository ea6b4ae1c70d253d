"""How far containers may exceed their limit, as recorded."""

import pytest

from agent.decide import burst_limiter
from agent.decide.strategies import cpu_burst as strategy
from agent.hooks.cpu import cpu_burst
from agent.hooks.lifecycle import adjustment, stages, subject
from agent.model import edits, state, strategy_settings
from tests.reference import cases, differences_agent

NOW = 1000.0


def settings(written):
    return strategy_settings.NodeBurst(
        strategy_settings.Burst(
            written.get("policy", "none"),
            written.get("cpuBurstPercent"),
            written.get("cfsQuotaBurstPercent"),
            written.get("cfsQuotaBurstPeriodSeconds"),
        ),
        written.get("sharePoolThresholdPercent", 50),
    )


def containers(given, raw):
    pod = differences_agent.pod_state(raw).pod
    asked = {container.name: container for container in pod.spec.containers}
    for status in pod.status.container_statuses:
        key = f"{pod.metadata.name}/{status.name}"
        if status.container_id:
            yield state.ContainerState(
                status.name,
                key,
                asked[status.name],
                running="running" in status.state,
                usage=state.Usage(cpu=given["containerCPUUsageCores"].get(key)),
                throttled=given["containerThrottledRatio"].get(key),
                quota_us=given["cfsQuotaUs"].get(key),
            )


def plan(given):
    pods, used = [], {}
    for raw in given["pods"]:
        name, uid = raw["metadata"]["name"], raw["metadata"]["uid"]
        pods.append(
            differences_agent.pod_state(
                raw,
                group=name,
                quota_us=given["cfsQuotaUs"].get(name),
                containers=tuple(containers(given, raw)),
            )
        )
        if name in given["podCPUUsageCores"]:
            used[uid] = given["podCPUUsageCores"][name]
    processors = tuple(state.Processor(n, n, 0, 0) for n in range(given["processorCount"]))
    buckets = {
        key: burst_limiter.Bucket(old["capacity"], old["token"], NOW - old["elapsedSeconds"])
        for key, old in given["limiters"].items()
    }
    return strategy.plan(
        state.NodeState(at=0, pods=tuple(pods), processors=processors),
        settings(given["cpuBurstStrategy"]),
        strategy.Averages(given.get("nodeCPUUsageCores"), used),
        buckets,
        NOW,
    )


def after(case):
    given, planned = case.given, plan(case.given)
    quotas = dict(given["cfsQuotaUs"])
    quotas |= {c.group: c.quota_us for c in planned.changes if c.quota_us is not None}
    bursts = {c.group: c.burst_us for c in planned.changes if c.burst_us}
    return planned.load.value, quotas, bursts


def recorded(case):
    load = case.expected["nodeState"].removeprefix("nodeBurst").lower()
    bursts = {key: value for key, value in case.expected["cfsBurstUs"].items() if value}
    return load, case.expected["cfsQuotaUs"], bursts


@pytest.mark.vectors
def test_a_round_of_bursting():
    cases.check("cpu_burst", after, recorded, differences_agent.of("cpu_burst"))


def delivered(case):
    """The bursts that hooks deliver when containers are created, on a kernel that takes any."""
    kernel = state.Kernel(frozenset({edits.Role.CPU_IDENTITY}))
    by = cpu_burst.Rule(settings(case.given["cpuBurstStrategy"]), kernel)
    rules, found = stages.freeze([cpu_burst.HOOK.bind(by)]), {}
    for raw in case.given["pods"]:
        pod = differences_agent.pod_state(raw)
        for one in containers(case.given, raw):
            stage, level = subject.Stage.CREATE_CONTAINER, subject.Level.CONTAINER
            of = subject.Subject(stage, level, pod, one)
            adjusted, problems = adjustment.adjust(of, rules)
            assert not problems
            for value in adjusted.values.values():
                found[one.group] = int(value.text)
    return found


@pytest.mark.vectors
def test_bursts_at_creation_are_those_of_containers_that_run():
    def recorded_of_containers(case):
        return {key: us for key, us in recorded(case)[2].items() if "/" in key}

    differences = differences_agent.of("cpu_burst")
    cases.check("cpu_burst", delivered, recorded_of_containers, differences)


@pytest.mark.vectors
def test_the_limiter():
    def looks(case):
        period, percent = case.given["burstPeriodSeconds"], case.given["cfsQuotaBurstPercent"]
        size, now = burst_limiter.capacity(period, percent), 0
        bucket, found = burst_limiter.Bucket(size, case.given["initialToken"], now), []
        for milliseconds, used in case.given["steps"]:
            now += milliseconds // 1000
            allowed, left = burst_limiter.look(bucket, period, percent, used, now)
            bucket = left or bucket
            found.append([allowed, bucket.tokens])
        return found

    file = "cpu_burst_limiter"
    cases.check(file, looks, lambda case: case.expected["steps"], differences_agent.of(file))
