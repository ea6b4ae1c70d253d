"""examples/: every file is applied to the running system and shows what its comments say."""

import json
import pathlib
import re

import pytest
import yaml

from api import names, resources
from descheduler.configuration import document

FOLDER = pathlib.Path(__file__).parents[2] / "examples"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
KINDS = {
    (one.api_version, one.kind): one
    for one in vars(resources).values()
    if isinstance(one, resources.Resource)
}
ORDER = ["profiles.yaml", *(name for name in FILES if name != "profiles.yaml")]
GPUS = {
    "apiVersion": "scheduling.koordinator.sh/v1alpha1",
    "kind": "Device",
    "metadata": {"name": "n3", "labels": {"node.koordinator.sh/gpu-vendor": "nvidia"}},
    "spec": {
        "devices": [
            {
                "type": "gpu",
                "minor": minor,
                "id": f"GPU-{minor}",
                "health": True,
                "resources": {
                    "koordinator.sh/gpu-core": "100",
                    "koordinator.sh/gpu-memory": "16Gi",
                    "koordinator.sh/gpu-memory-ratio": "100",
                },
            }
            for minor in (0, 1)
        ]
    },
}


def objects(name):
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text()) if one]


async def applied(world, document):
    """Create an object as kubectl does; warnings of admission would be shown to its author."""
    resource = KINDS[document["apiVersion"], document["kind"]]
    metadata = document["metadata"]
    space = metadata.get("namespace", "default") if resource.namespaced else ""
    async with world.flowing():
        await world.api.post(resource.path(space), document, fieldValidation="Strict")


def offered(world, resource):
    return resource in world.found(resources.NODES, "n3")["status"]["allocatable"]


def test_every_file_is_in_the_table_and_is_short():
    table = re.findall(r"^\| \[(\S+)\]\((\S+)\)", (FOLDER / "README.md").read_text(), re.M)
    assert sorted(name for name, link in table if name == link) == FILES
    for name in FILES:
        assert (FOLDER / name).read_text().startswith("#"), name
        assert len((FOLDER / name).read_text().splitlines()) <= 130, name


@pytest.mark.timeout(120)
async def test_everything_can_be_applied_and_shows_what_it_says(world):
    for node in ("n1", "n2", "n3"):
        await world.add_node(node)
    await applied(world, GPUS)
    await world.until(lambda: offered(world, "koordinator.sh/gpu-core"), "GPUs are offered")
    async with world.flowing():
        # What a device plug-in of NVIDIA and the manager's gate for shared GPUs add.
        for part in ("capacity", "allocatable"):
            amounts = {"nvidia.com/gpu": "2", "koordinator.sh/gpu.shared": "200"}
            await world.api.patch("/api/v1/nodes/n3/status", {"status": {part: amounts}})
    for name in ORDER:
        for one in objects(name):
            await applied(world, one)

    def waiting():
        return [p["metadata"]["name"] for p in world.pods() if not p["spec"].get("nodeName")]

    def everybody():
        return len(world.pods()) >= 17 and waiting() == ["priority-mid"]

    await world.until(everybody, "every pod but one has a node", 60.0)

    report = [p for p in world.pods() if p["metadata"]["namespace"] == "example-analytics"]
    assert len(report) == 2
    for pod in report:
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["requests"] == {
            names.BATCH_CPU: "1k",
            names.BATCH_MEMORY: "1Gi",
        }
        assert pod["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"
    kept = world.found(resources.RESERVATIONS, "example-nightly")["status"]
    assert kept["phase"] == "Available"
    assert world.node_of("nightly-report") == kept["nodeName"]
    given = [
        json.loads(world.pod(name)["metadata"]["annotations"][names.ANNOTATION_DEVICE_ALLOCATED])
        for name in ("gpu-half", "gpu-whole")
    ]
    minors = [one["minor"] for pod in given for one in pod["gpu"]]
    assert sorted(minors) == [0, 1]


def test_the_configuration_of_the_descheduler_is_read_without_a_warning():
    (settings,) = objects("descheduler.yaml")
    reading = document.read(settings["data"]["koord-descheduler-config"])
    assert (reading.faults, reading.warnings) == ((), ())
