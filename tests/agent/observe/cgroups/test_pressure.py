"""How long the tasks of pods wait is told while they are there, and why where it is not."""

import pytest

from agent.host import files, psi
from agent.observe import collectors
from agent.observe.cgroups import pressure
from agent.observe.node import kernel_features
from process.runtime import metrics

GIB = 1 << 30
BOTH = "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=4.00 avg60=0.10 total=1\n"
SOME = "some avg10=30.00 avg60=1.00 avg300=0.00 total=5\n"
METRIC = "koord_agent_pressure_ratio"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (BOTH.encode(), psi.Wait(12.5, 4.0)),
        (SOME.encode(), psi.Wait(30.0, None)),
        (b"", psi.Wait()),
        (b"some\n", psi.Wait()),
        (b"full avg10=0.00\n", psi.Wait(None, 0.0)),
    ],
)
def test_files_of_pressure(data, expected):
    assert psi.parse(data) == expected


def test_a_share_that_is_no_number():
    with pytest.raises(files.ReadingError, match="no share"):
        psi.parse(b"some avg10=much\n")


@pytest.fixture
def waiting(host):
    """Two pods on a host whose kernel says how long they wait."""
    host.add("a", "Burstable", 500)
    host.add("b", "Guaranteed", 500)
    registry = metrics.Registry()
    host.observer._collectors = collectors.Collectors([pressure.Pressures(registry, 10.0)])
    host.registry = registry

    def write(group, name, text):
        path = getattr(kernel_features.cgroup_layout.File, f"{name.upper()}_PRESSURE")
        place = files.os.path.realpath(host.observer.layout.path(path, group))
        files.os.makedirs(files.os.path.dirname(place), exist_ok=True)
        with open(place, "w") as file:  # noqa: PTH123
            file.write(text)

    host.write = write
    return host


def value(host, pod, container, resource, kind):
    labels = {"pod_namespace": "default", "pod_name": f"name-{pod}", "container": container}
    return host.registry.value(METRIC, labels | {"resource": resource, "kind": kind})


def test_every_group_is_told_and_goes_with_its_pod(waiting):
    picture = waiting.step()
    assert "pressure" in picture.problems
    assert ("boot with psi=1" in picture.problems["pressure"]) is (waiting.tree.version == 2)
    top = waiting.observer.layout.qos_group("Guaranteed")
    groups = [g for pod in picture.pods for g in (pod.group, pod.containers[0].group)]
    for name in ("cpu", "memory", "io"):
        for group in (top, *groups):
            waiting.write(group, name, SOME if name == "cpu" else BOTH)
    picture = waiting.step(10)
    assert "pressure" not in picture.problems
    assert value(waiting, "a", "", "cpu", "some") == 0.3
    assert value(waiting, "a", "", "cpu", "full") is None
    assert value(waiting, "a", "app", "memory", "full") == 0.04
    assert value(waiting, "b", "app", "io", "some") == 0.125
    samples = waiting.observer.samples
    assert samples.get(("container", "a", "app", "pressure-cpu-some")).newest[1] == 30.0
    assert samples.get(("pod", "b", "pressure-memory-full")).newest[1] == 4.0
    waiting.know(pods=waiting.known.pods[:1])
    waiting.step(10)
    assert value(waiting, "b", "", "cpu", "some") is None
    assert value(waiting, "a", "", "cpu", "some") == 0.3
    waiting.observer.close()
    assert value(waiting, "a", "", "cpu", "some") is None
