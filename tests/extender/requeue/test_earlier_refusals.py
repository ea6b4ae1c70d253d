"""Pods that another process refused, or before that was switched off, are tried once more."""

import pytest

from api import names
from tests.extender import running_extender
from tests.extender.scoring import test_assembly

START = 1782907510.0
GANG = {
    "gang.scheduling.koordinator.sh/name": "g",
    "gang.scheduling.koordinator.sh/min-available": "2",
}


def waiting(make, name, reason="Unschedulable", *, priority=0, **more):
    """A pod that kube-scheduler has told why it has no node."""
    pod = make.pod(name, **more)
    pod["spec"]["priority"] = priority
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": reason}]
    return pod


class Anew(running_extender.Extender):
    """A running extender that has found pods that wait, and when it woke each."""

    def woken(self):
        """The names of those woken, in their order."""
        pods = [one["metadata"] for one in self.server.objects["pods"].values()]
        found = {
            one["name"]: one.get("annotations", {}).get(names.ANNOTATION_NUDGE) for one in pods
        }
        return sorted((name for name, when in found.items() if when), key=lambda name: found[name])

    async def filter(self, name, *nodes):
        pod = self.server.objects["pods"][f"default/{name}"]
        body = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}
        return (await self.call("filter", body))["NodeNames"]


@pytest.fixture
def begun(api_server, make):
    """Starts an extender over what is in the API server."""
    api_server.put("nodes", make.node("n1"))

    def begin(**options):
        return running_extender.opened(Anew, api_server, make, START, **options)

    return begin


async def test_a_pod_that_was_refused_before_is_woken_once(api_server, make, begun):
    api_server.put("pods", waiting(make, "p"))
    async with begun() as anew:
        assert anew.woken() == []
        await anew.until(anew.woken)
        first = anew.nudged("p")
        await anew.time.advance(600)
        assert anew.nudged("p") == first
        async with anew.session.get(f"{anew.app.health_url}/metrics") as page:
            assert 'koord_extender_nudges_total{because="restart"} 1.0' in await page.text()


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"reason": "SchedulingGated"}, id="held by a gate"),
        pytest.param({"reason": "SchedulerError"}, id="its call failed: it is tried by itself"),
        pytest.param({"annotations": GANG}, id="a gang is tried as a whole"),
        pytest.param({"node": "n1"}, id="it has a node"),
        pytest.param({"phase": "Failed"}, id="it has ended"),
    ],
)
async def test_others_are_left_alone(api_server, make, begun, pod):
    api_server.put("pods", waiting(make, "other", **pod))
    api_server.put("pods", make.pod("new"))
    api_server.put("pods", waiting(make, "p"))
    async with begun() as anew:
        await anew.until(anew.woken)
        await anew.time.advance(60)
        assert anew.woken() == ["p"]


async def test_pods_of_a_scheduler_that_does_not_call_the_extender_are_left_alone(
    api_server, make, begun, tmp_path
):
    api_server.objects |= {plural: {} for plural in test_assembly.WATCHED}
    for name in ("default-scheduler", "volcano"):
        pod = waiting(make, f"of-{name}")
        pod["spec"]["schedulerName"] = name
        api_server.put("pods", pod)
    file = tmp_path / "scheduler.yaml"
    file.write_text(test_assembly.configuration())
    called = {"version": "v1.36.3", "extender_url": test_assembly.URL, "config_file": file}
    async with begun(scheduler=called) as anew:
        await anew.until(anew.woken)
        await anew.time.advance(60)
        assert anew.woken() == ["of-default-scheduler"]


async def test_a_pod_that_is_refused_again_is_known_and_waits_for_a_change(api_server, make, begun):
    api_server.put("nodemetrics", make.metric("n1", cpu="127"))
    api_server.put("pods", waiting(make, "p", requests={"cpu": "1"}))
    async with begun() as anew:
        assert await anew.filter("p", "n1") == []
        await anew.time.advance(60)
        assert anew.woken() == []


async def test_a_pod_that_is_being_bound_or_gone_is_left_alone(api_server, make, begun):
    for name in ("bound", "gone", "p"):
        api_server.put("pods", waiting(make, name))
    api_server.echo = False
    async with begun() as anew:
        api_server.delete("pods", "default/gone")
        body = {"PodName": "bound", "PodNamespace": "default", "PodUID": "uid-bound", "Node": "n1"}
        assert (await anew.call("bind", body))["Error"] == ""
        await anew.until(anew.woken)
        await anew.time.advance(60)
        assert anew.woken() == ["p"]


async def test_a_pod_is_left_alone_once_something_else_is_said_of_it(api_server, make, begun):
    for name in ("failed", "new"):
        api_server.put("pods", waiting(make, name, "SchedulerError"))
    for name in ("tried", "preempts", "p"):
        api_server.put("pods", waiting(make, name))
    noted = {names.ANNOTATION_PREEMPTION: "for this one others leave"}
    async with begun() as anew:
        api_server.put("pods", waiting(make, "new"))
        api_server.put("pods", waiting(make, "tried", "SchedulerError"))
        api_server.put("pods", waiting(make, "preempts", annotations=noted))
        await anew.until(anew.woken)
        await anew.time.advance(60)
        assert anew.woken() == ["p"]


async def test_a_pod_that_came_anew_under_its_name_is_left_alone(api_server, make, begun):
    api_server.put("pods", waiting(make, "p"))
    async with begun() as anew:
        api_server.delete("pods", "default/p")
        api_server.put("pods", waiting(make, "p", uid="another"))
        await anew.time.advance(60)
        assert anew.woken() == []


async def test_namespaces_take_turns_and_the_most_important_pods_come_first(
    api_server, make, begun
):
    for number in range(6):
        api_server.put("pods", waiting(make, f"many-{number}", priority=number, namespace="many"))
    for number in range(2):
        api_server.put("pods", waiting(make, f"few-{number}", priority=number, namespace="few"))
    api_server.put("pods", waiting(make, "urgent", priority=9, namespace="last"))
    async with begun(nudges={"per_second": 1, "burst": 1}) as anew:
        await anew.until(lambda: len(anew.woken()) == 9)
        assert anew.woken() == [
            "urgent", "many-5", "few-1", "many-4", "few-0", "many-3", "many-2", "many-1", "many-0"
        ]  # fmt: skip


async def test_a_write_that_failed_is_tried_again(api_server, make, begun):
    api_server.put("pods", waiting(make, "p"))
    api_server.fault = "patch"
    async with begun() as anew:
        await anew.until(lambda: api_server.faults > 2)
        assert anew.woken() == []
        api_server.fault = None
        await anew.until(anew.woken)


async def test_it_ends_when_kube_scheduler_has_tried_all_by_itself(api_server, make, begun):
    api_server.put("pods", waiting(make, "p"))
    api_server.fault = "patch"
    async with begun() as anew:
        await anew.until(lambda: api_server.faults > 2)
        await anew.time.advance(400)
        tries, api_server.fault = api_server.faults, None
        await anew.time.advance(60)
        assert (api_server.faults, anew.woken()) == (tries, [])


async def test_it_is_switched_off_with_all_other_nudges(api_server, make, begun):
    api_server.put("pods", waiting(make, "p"))
    async with begun(nudges={"enabled": False}) as anew:
        await anew.time.advance(60)
        assert anew.woken() == []


SWITCHES = {"name": names.CONFIG_MAP_SWITCHES, "namespace": names.NAMESPACE, "uid": "c"}


class Switched(Anew):
    """The same, and its live switch."""

    async def switch(self, mode):
        self.server.put("configmaps", {"metadata": SWITCHES, "data": {"extender": mode}})
        await self.until(lambda: str(self.app.answers.switches.mode) == mode)

    async def waits(self, *pods):
        """Let pods be refused that fit nowhere by their load."""
        for name in pods:
            self.server.put("pods", waiting(self.make, name, requests={"cpu": "4"}))
        await self.until(lambda: all(self.app.feeds.pods.get(f"default/{name}") for name in pods))
        for name in pods:
            assert await self.filter(name, "n1") == []


@pytest.fixture
def full(api_server, make):
    """An extender whose only node is busy."""
    api_server.put("nodes", make.node("n1"))
    api_server.put("nodemetrics", make.metric("n1", cpu="127"))

    def begin(**options):
        return running_extender.opened(Switched, api_server, make, START, **options)

    return begin


@pytest.mark.parametrize("mode", ["off", "observe"])
async def test_those_that_wait_are_woken_once_when_nothing_is_refused_any_more(full, mode):
    async with full() as extender:
        await extender.waits("one", "two")
        await extender.time.advance(60)
        assert extender.woken() == []
        await extender.switch(mode)
        await extender.until(lambda: len(extender.woken()) == 2)
        first = extender.nudged("one"), extender.nudged("two")
        assert await extender.filter("one", "n1") == ["n1"]
        await extender.time.advance(600)
        assert (extender.nudged("one"), extender.nudged("two")) == first
        async with extender.session.get(f"{extender.app.health_url}/metrics") as page:
            assert 'koord_extender_nudges_total{because="switch"} 2.0' in await page.text()


async def test_what_is_refused_after_the_switch_is_back_waits_as_before(full):
    async with full() as extender:
        await extender.switch("off")
        await extender.switch("enforce")
        await extender.waits("p")
        await extender.time.advance(60)
        assert extender.woken() == []
        await extender.switch("off")
        await extender.until(extender.woken)
        first = extender.nudged("p")
        await extender.switch("enforce")
        assert await extender.filter("p", "n1") == []
        await extender.time.advance(60)
        assert extender.nudged("p") == first
        await extender.switch("off")
        await extender.until(lambda: extender.nudged("p") != first)


async def test_a_write_that_fails_while_nothing_is_refused_is_tried_again_each_second(
    api_server, full
):
    async with full(explanations={"write": False}) as extender:
        await extender.waits("one", "two")
        api_server.fault = "patch"
        await extender.switch("off")
        await extender.until(lambda: api_server.faults)
        before = api_server.faults
        await extender.time.advance(10)
        assert 5 <= api_server.faults - before <= 11
        api_server.fault = None
        await extender.until(lambda: len(extender.woken()) == 2)


async def test_one_that_is_tried_by_itself_meanwhile_is_not_woken(full):
    async with full(nudges={"in_line_per_second": 0.1, "in_line_burst": 1}) as extender:
        await extender.waits("one", "two", "three")
        await extender.switch("off")
        await extender.until(extender.woken)
        # The next one waits for its turn by now.
        (woken,) = extender.woken()
        for name in {"one", "two", "three"} - {woken}:
            assert await extender.filter(name, "n1") == ["n1"]
        await extender.time.advance(60)
        assert extender.woken() == [woken]


async def test_one_that_the_watch_does_not_show_holds_up_nobody(full):
    """It may have been deleted while it was asked about."""
    async with full() as extender:
        gone = {"Pod": waiting(extender.make, "gone", requests={"cpu": "4"}), "NodeNames": ["n1"]}
        assert (await extender.call("filter", gone))["NodeNames"] == []
        await extender.waits("p")
        await extender.switch("off")
        began = extender.time.monotonic()
        await extender.until(extender.woken)
        assert extender.time.monotonic() - began < 5
        assert extender.woken() == ["p"]


async def test_without_nudges_the_switch_wakes_nobody(full):
    async with full(nudges={"enabled": False}) as extender:
        await extender.waits("p")
        await extender.switch("off")
        await extender.time.advance(60)
        assert extender.woken() == []


async def test_no_more_are_woken_once_the_switch_is_back(full):
    async with full(nudges={"in_line_per_second": 0.1, "in_line_burst": 1}) as extender:
        await extender.waits("one", "two", "three")
        await extender.switch("off")
        await extender.until(extender.woken)
        await extender.switch("enforce")
        await extender.time.advance(60)
        assert len(extender.woken()) == 1
