"""What is read of a pod, for each minor version that reads it in its own way."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.scoring import pod, releases, requests, terms
from tests import processor_time
from tests.domain.scoring import clusters

MIB = 2**20
GIB = 2**30
OLDEST, NEWEST = releases.OLDEST, releases.NEWEST


def container(name: str, cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    """Return a container with these requests."""
    asked = {"cpu": cpu, "memory": memory}
    requests = {key: value for key, value in asked.items() if value}
    return {"name": name, "image": name, "resources": {"requests": requests}} | more


def written(containers: Sequence[Any], status: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a pod as it is written."""
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": list(containers)} | spec,
        "status": status or {},
    }


def running(name: str, allocated: dict[str, str], actuated: dict[str, str]) -> dict[str, Any]:
    """Return the status of a container: what was granted and what is enforced."""
    return {"name": name, "allocatedResources": allocated, "resources": {"requests": actuated}}


SIDECAR = container("s", "200m", restartPolicy="Always")
POD_LEVEL = {"resources": {"requests": {"cpu": "3"}}}
GROWS = {"containerStatuses": [running("c", {"cpu": "2"}, {"cpu": "1500m"})]}
TWO_GROW = {
    "containerStatuses": [
        running("a", {"cpu": "1"}, {"cpu": "1"}),
        running("b", {"cpu": "3"}, {"cpu": "3"}),
    ]
}
INFEASIBLE = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}

CPU: dict[str, tuple[dict[str, Any], dict[int, tuple[int, int, int]]]] = {
    # By minor version: plain, as a pending pod is scored, as a pod on a node is counted.
    "a container without requests": (
        written([container("c")]),
        {OLDEST: (0, 100, 100), NEWEST: (0, 100, 100)},
    ),
    "an explicit zero counts as zero": (
        written([container("c", "0")]),
        {OLDEST: (0, 0, 0), NEWEST: (0, 0, 0)},
    ),
    "two containers, one without": (
        written([container("a", "500m"), container("b")]),
        {OLDEST: (500, 600, 600)},
    ),
    "a sidecar and an init container after it": (
        written(
            [container("c", "100m")],
            initContainers=[container("early", "250m"), SIDECAR, container("late", "300m")],
        ),
        {OLDEST: (500, 500, 500), 32: (500, 500, 500)},
    ),
    "a sidecar is taken for an init container up to 1.31": (
        written([container("a", "300m"), container("b")], initContainers=[SIDECAR]),
        {OLDEST: (500, 600, 400), 31: (500, 600, 400), 32: (500, 600, 600)},
    ),
    "a sidecar alone outweighs the others up to 1.31": (
        written([container("c", "50m")], initContainers=[SIDECAR, container("i", "100m"), SIDECAR]),
        {31: (450, 450, 400), 32: (450, 450, 450)},
    ),
    "overhead comes on top of that": (
        written([container("c")], initContainers=[SIDECAR], overhead={"cpu": "20m"}),
        {31: (220, 320, 220), 32: (220, 320, 320)},
    ),
    "init containers without requests": (
        written([container("c", "50m")], initContainers=[container("i"), SIDECAR, container("j")]),
        {OLDEST: (250, 300, 200), 32: (250, 300, 300)},
    ),
    "overhead comes on top": (
        written([container("c")], overhead={"cpu": "20m"}),
        {OLDEST: (20, 120, 120)},
    ),
    "fractions are rounded once, over all containers": (
        written([container("a", "0.0001"), container("b", "0.0001")]),
        {OLDEST: (1, 1, 2), 32: (1, 1, 1)},
    ),
    "pod-level requests, since 1.34": (
        written([container("c", "1"), container("d")], **POD_LEVEL),
        {33: (1000, 1100, 1100), 34: (3000, 1100, 3000), NEWEST: (3000, 1100, 3000)},
    ),
    "a resize that was granted, since 1.33": (
        written([container("c", "1")], GROWS),
        {32: (1000, 1000, 1000), 33: (2000, 1000, 2000), 37: (2000, 1000, 2000)},
    ),
    "a resize that cannot be": (
        written([container("c", "4")], GROWS | INFEASIBLE),
        {32: (4000, 4000, 4000), 33: (2000, 4000, 2000), 37: (2000, 4000, 2000)},
    ),
    "one shrinks while another grows: per container until 1.36, together since 1.37": (
        written([container("a", "2"), container("b", "1")], TWO_GROW),
        {36: (5000, 3000, 5000), 37: (4000, 3000, 4000)},
    ),
    "an init container cannot be resized": (
        written(
            [container("c", "1")],
            {"initContainerStatuses": [running("i", {"cpu": "9"}, {"cpu": "9"})]},
            initContainers=[container("i", "2")],
        ),
        {32: (2000, 2000, 2000), 36: (2000, 2000, 2000), 37: (9000, 2000, 9000)},
    ),
    "a sidecar can": (
        written(
            [container("c", "1")],
            {"initContainerStatuses": [running("s", {"cpu": "2"}, {"cpu": "2"})]},
            initContainers=[SIDECAR],
        ),
        {32: (1200, 1200, 1200), 33: (3000, 1200, 3000), 37: (3000, 1200, 3000)},
    ),
    "a pod-level resize, since 1.36": (
        written(
            [container("c", "1")],
            {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "4"}}},
            **POD_LEVEL,
        ),
        {34: (3000, 1000, 3000), 36: (5000, 1000, 5000), 37: (5000, 1000, 5000)},
    ),
    "a pod-level resize that cannot be": (
        written(
            [container("c", "1")],
            {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "1"}}}
            | INFEASIBLE,
            **POD_LEVEL,
        ),
        {35: (3000, 1000, 3000), 36: (2000, 1000, 2000)},
    ),
}
CPU_CASES = {
    f"{name}, 1.{minor}": (pod_written, minor, figures)
    for name, (pod_written, by_minor) in CPU.items()
    for minor, figures in by_minor.items()
}


@pytest.mark.parametrize(("said", "minor", "figures"), CPU_CASES.values(), ids=CPU_CASES)
def test_requested_cpu(said: dict[str, Any], minor: int, figures: tuple[int, int, int]) -> None:
    read, release = clusters.read_pod(said), releases.RELEASES[minor]
    plain = requests.plain(read, release).get("cpu", 0)
    pending = requests.nonzero(read).get("cpu", 0)
    assert (plain, pending, requests.nonzero_placed(read, release)[0]) == figures


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.from_regex(r"[0-9]{1,4}(m|Ki|Gi)?", fullmatch=True),
)


@given(
    st.lists(AMOUNTS.map(lambda asked: {"name": "c", "resources": {"requests": asked}}), max_size=3)
)
def test_the_status_of_a_container_that_is_not_there_changes_nothing(containers: Any) -> None:
    plain = clusters.read_pod(written(containers))
    other = clusters.read_pod(written(containers, {"containerStatuses": [{"name": "gone"}]}))
    assert requests.nonzero(plain) == requests.nonzero(other)
    for release in releases.RELEASES.values():
        assert requests.plain(plain, release) == requests.plain(other, release)
        assert requests.nonzero_placed(plain, release) == requests.nonzero_placed(other, release)


def test_memory_that_a_pod_level_request_leaves_open() -> None:
    # Once it is on a node, only a resource that nobody states counts 200Mi per container.
    read = clusters.read_pod(written([container("c", "1", "1Gi"), container("d")], **POD_LEVEL))
    release = releases.RELEASES[36]
    assert requests.plain(read, release)["memory"] == GIB
    assert requests.nonzero(read)["memory"] == GIB + 200 * MIB
    assert requests.nonzero_placed(read, release) == (3000, GIB)
    bare = clusters.read_pod(written([container("c", "1"), container("d")], **POD_LEVEL))
    assert requests.nonzero_placed(bare, release) == (3000, 400 * MIB)


def test_pod_level_extended_resources_do_not_count() -> None:
    level = {"resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}}}
    read = clusters.read_pod(written([container("c")], **level))
    assert "example.com/gpu" not in requests.plain(read, releases.RELEASES[36])


WITH_IMAGES = written(
    [container("web"), container("reg.test:5000/db")],
    initContainers=[container("init:1"), container("side@sha256:0", restartPolicy="Always")],
    volumes=[{"name": "m", "image": {"reference": "model:2"}}, {"name": "e", "emptyDir": {}}],
)
IMAGES = {
    28: (["web:latest", "reg.test:5000/db:latest"], 2),
    29: (["web:latest", "reg.test:5000/db:latest"], 2),
    30: (["init:1", "side@sha256:0", "web:latest", "reg.test:5000/db:latest"], 4),
    35: (["init:1", "side@sha256:0", "web:latest", "reg.test:5000/db:latest"], 4),
    36: (["init:1", "side@sha256:0", "web:latest", "reg.test:5000/db:latest", "model:2"], 4),
    37: (["init:1", "side@sha256:0", "web:latest", "reg.test:5000/db:latest", "model:2"], 5),
}


@pytest.mark.parametrize(("minor", "expected"), IMAGES.items(), ids=map(str, IMAGES))
def test_images(minor: int, expected: tuple[list[str], int]) -> None:
    found = pod.read(clusters.read_pod(WITH_IMAGES), releases.RELEASES[minor])
    assert (list(found.images), found.image_count) == expected


def test_preferences_and_requirements() -> None:
    def matching(key: str, operator: str, *values: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}

    affinity = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": matching("disk", "NotIn", "hdd")},
            {"weight": 3, "preference": {"matchFields": matching("metadata.name", "In", "a")[
                "matchExpressions"
            ]}},
            {"weight": 7, "preference": {}},
        ],
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [matching("zone", "Exists"), matching("cores", "Gt", "8"), {}]
        },
    }  # fmt: skip
    given = written([], nodeSelector={"os": "linux"}, affinity={"nodeAffinity": affinity})
    found = pod.read(clusters.read_pod(given), releases.RELEASES[36])
    assert found.preferences is not None
    assert found.requirements is not None
    assert [weight for _, weight in found.preferences] == [5, 3]
    by_label, by_field = (term for term, _ in found.preferences)
    assert by_label.matches("b", {})
    assert not by_label.matches("b", {"disk": "hdd"})
    assert by_field.matches("a", {})
    assert not by_field.matches("b", {})
    assert found.requirements.matches("a", {"os": "linux", "cores": "9"})
    assert not found.requirements.matches("a", {"os": "linux", "cores": "8"})
    assert not found.requirements.matches("a", {"zone": ""})
    assert found.requirements.matches("a", {"os": "linux", "zone": ""})


def test_a_required_affinity_without_terms_matches_no_node() -> None:
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    found = terms.node_requirements({}, affinity)
    assert found is not None
    assert not found.matches("a", {})


@pytest.mark.parametrize("minor", [OLDEST, NEWEST])
def test_thousands_of_init_containers_with_a_resource_each_take_no_longer_than_others(
    minor: int,
) -> None:
    asked = [
        {"name": f"i{n}", "resources": {"requests": {f"example.com/r{n}": "1"}}}
        | ({"restartPolicy": "Always"} if n % 2 else {})
        for n in range(6000)
    ]
    given = clusters.read_pod(written([], initContainers=asked))
    with processor_time.below(0.3):
        plain = requests.plain(given, releases.RELEASES[minor])
    assert plain == {f"example.com/r{n}": 1 for n in range(6000)}
    with processor_time.below(0.3):
        requests.nonzero_placed(given, releases.RELEASES[minor])
