"""How often limits throttle containers, from counters that only grow while a container lives."""

import msgspec
import pytest

from agent.model import cgroup_layout
from agent.observe import collectors
from agent.observe.cgroups import throttling
from agent.store import time_series
from api.kubernetes import core
from process.runtime import metrics

LIMITS = ("cpu", "kubernetes.io/batch-cpu", "koordinator.sh/batch-cpu")


def asking(pod, container):
    (app,) = pod.containers
    found = msgspec.structs.replace(app, container=container)
    return msgspec.structs.replace(pod, containers=(found,))


@pytest.fixture(params=LIMITS)
def throttled(request, host):
    """A pod with a limit and one without, on a host that counts periods."""
    host.add("a", "Burstable", 500)
    host.add("b", "Burstable", 500)
    registry = metrics.Registry()
    made = throttling.Throttling(registry, 10.0)
    first, second = host.step().pods
    limited = core.ResourceRequirements(limits={request.param: "1000"})
    named = (core.Container("app", resources=limited), core.Container("app"))
    pods = (asking(first, named[0]), asking(second, named[1]))
    samples = time_series.Histories()
    layout = host.observer.layout

    def look(at, *counts):
        for pod, (periods, stops) in zip(pods, counts, strict=True):
            place = layout.path(cgroup_layout.File.CPU_STAT, pod.containers[0].group)
            kept = ["usage_usec 5"] if layout.version == 2 else []
            lines = [*kept, f"nr_periods {periods}", f"nr_throttled {stops}", ""]
            with open(place, "w") as file:  # noqa: PTH123
                file.write("\n".join(lines))
        made.collect(collectors.Sight(at, layout, host.observer._kept, samples, pods))
        newest = samples.get(("pod", "a", throttling.FIGURE))
        return newest.newest[1] if newest else None

    look.registry, look.made, look.samples = registry, made, samples
    return look


def value(look, pod):
    labels = {"pod_namespace": "default", "pod_name": f"name-{pod}", "container": "app"}
    return look.registry.value("koord_agent_throttled_ratio", labels)


def test_a_share_is_that_of_the_periods_since_the_last_look(throttled):
    assert throttled(0.0, (100, 10), (100, 10)) is None
    assert throttled(10.0, (200, 60), (200, 60)) == 0.5
    assert value(throttled, "a") == 0.5
    throttled(20.0, (200, 60), (200, 60))
    assert value(throttled, "a") is None
    throttled(30.0, (50, 5), (50, 5))
    assert value(throttled, "a") is None
    assert throttled(40.0, (150, 5), (150, 5)) == 0.0
    assert value(throttled, "b") is None
    assert throttled.samples.get(("pod", "b", throttling.FIGURE)) is None
    throttled.made.close()
    assert value(throttled, "a") is None
