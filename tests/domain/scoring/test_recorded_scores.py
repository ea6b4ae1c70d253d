"""Every plug-in and every total, as real kube-schedulers of several releases scored them."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from domain.scoring import configuration, normalize, profile
from tests.domain.scoring import clusters
from tests.reference import cases

pytestmark = pytest.mark.vectors

PARTS = {"intree_scores": 6, "random_scores": 3}
"""Files and in how many parts they are compared.

tests/e2e/scheduler/test_scores.py can record the second.
"""
CONSTANT = {profile.VOLUMES, profile.DEVICES, profile.POD_AFFINITY}
"""Zero on every node for the pods of these recordings, so that they are not computed."""

Sizes = dict[str, int]


def recorded(file: str, part: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield one part of the recorded clusters and their line numbers."""
    for number, line in enumerate(cases.lines(file)):
        if number % PARTS[file] == part:
            yield number, json.loads(line)


def images_of(pod: Mapping[str, Any]) -> list[str]:
    """Return the images of a pod as they are written; all of them have a tag."""
    spec = pod["spec"]
    return [one["image"] for one in (*spec.get("initContainers", ()), *spec["containers"])]


def known_sizes(cluster: Mapping[str, Any], weight: int) -> Sizes:
    """Return what the scheduler took for the size of each image, told from its own scores.

    It keeps the size that the first node reported that it saw, in no order since 1.35.
    """
    reports: dict[str, dict[str, int]] = defaultdict(dict)
    for node in cluster["nodes"]:
        for image in node["status"].get("images", ()):
            for name in image["names"]:
                reports[name][node["metadata"]["name"]] = image["sizeBytes"]
    number = len(cluster["nodes"])
    choices = [sorted(set(sizes.values())) for sizes in reports.values()]
    left = [dict(zip(reports, sizes, strict=True)) for sizes in itertools.product(*choices)]

    def score(images: list[str], node: str, sizes: Sizes) -> int:
        held = (name for name in images if node in reports.get(name, ()))
        total = sum(int(sizes[name] * (len(reports[name]) / number)) for name in held)
        most, least = normalize.LARGEST_IMAGE * len(images), normalize.SMALLEST_IMAGES
        within = min(max(total, least), most)
        return weight * (100 * (within - least) // (most - least))

    for step in cluster["steps"]:
        images = images_of(step["pod"])
        for node, found in step["scores"].items():
            if len(left) == 1:
                return left[0]
            left = [sizes for sizes in left if score(images, node, sizes) == found[profile.IMAGES]]
    assert left, "no order of nodes explains the recorded ImageLocality scores"
    return left[0]


def built(cluster: Mapping[str, Any]) -> clusters.Cluster:
    """Return the recorded cluster before its first step."""
    surroundings = configuration.Surroundings(clusters.minor_of(cluster["version"]), "")
    name = cluster["config"]["profiles"][0]["schedulerName"]
    settings = configuration.read(cluster["config"], name, surroundings)
    assert settings.unsupported == ""
    sizes = known_sizes(cluster, dict(settings.weights).get(profile.IMAGES, 0))
    found = clusters.Cluster(settings)
    for node in cluster["nodes"]:
        for image in node["status"].get("images", ()):
            image["sizeBytes"] = sizes[image["names"][0]]
        found.add_node(clusters.read_node(node))
    for written in cluster["objects"]:
        found.add_workload(written)
    for placed in cluster["placed"]:
        found.place(clusters.read_pod(placed), placed["spec"]["nodeName"])
    return found


def compare(found: clusters.Cluster, step: Mapping[str, Any]) -> set[str]:
    """Compare one step on every node; return the plug-ins that were compared."""
    names = sorted(step["scores"])
    scores = found.scores(clusters.read_pod(step["pod"]), names)
    computed = {one.plugin: one.weighted.tolist() for one in scores.plugins}
    due: dict[str, list[int]] = {}
    for plugin in step["scores"][names[0]]:
        figures = [step["scores"][name][plugin] for name in names]
        if plugin in CONSTANT:
            assert set(figures) == {0}
        else:
            due[plugin] = figures
    assert computed == due
    assert scores.total.tolist() == [step["total"][name] for name in names]
    assert step["chosen"] in {found.names[row] for row in scores.best}
    return set(due)


@pytest.mark.parametrize(
    ("file", "part"), [(file, part) for file, parts in PARTS.items() for part in range(parts)]
)
def test_scores_are_those_of_the_scheduler(file: str, part: int) -> None:
    if part >= len(cases.lines(file)):
        pytest.skip("the file that the user named has fewer lines")
    compared: set[str] = set()
    for number, cluster in recorded(file, part):
        found = built(cluster)
        for place, step in enumerate(cluster["steps"]):
            pod = clusters.read_pod(step["pod"])
            if step["scores"]:
                try:
                    compared |= compare(found, step)
                except AssertionError as error:
                    raise AssertionError(f"{file}:{number}, step {place}: {error}") from error
            if step["chosen"]:
                found.place(pod, step["chosen"])
    assert compared >= {profile.FIT, profile.BALANCE, profile.TAINTS, profile.IMAGES}
