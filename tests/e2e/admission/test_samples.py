"""A sample that users bring along, driven through admission on the real API server."""

import pathlib

import pytest
import pytest_asyncio
import yaml

from api import names, resources
from tests.planes import raw
from tests.planes.admission import admitting

MANIFESTS = pathlib.Path(__file__).parents[2] / "manifests"
CRITICAL = "system-cluster-critical"


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(real_plane, tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    text = (MANIFESTS / "002-clustercolocationprofile-high-priority.yaml").read_text()
    profile = yaml.safe_load(text)
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        admitting.standing(real_plane, api, folder) as standing,
    ):
        await api.post(resources.COLOCATION_PROFILES.path(), profile)
        await raw.eventually(in_force(api), admitting.PATIENCE)
        yield standing
        path = resources.COLOCATION_PROFILES.path(name=profile["metadata"]["name"])
        await api.delete(path)


def a_pod(name, cpu):
    asked = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": asked, "limits": asked}}
    metadata = {"name": name, "labels": {"priority": "high"}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def in_force(api):
    async def tried():
        probe = a_pod("probe", "2")
        answer = await api.call("POST", admitting.PODS, probe, query={"dryRun": "All"})
        return names.LABEL_QOS in answer.body["metadata"]["labels"]

    return tried


async def test_the_high_priority_profile_gives_class_and_priority(stand):
    made = await stand.api.post(admitting.PODS, a_pod("critical", "2"))
    assert made["metadata"]["labels"][names.LABEL_QOS] == "LSE"
    assert made["spec"]["priorityClassName"] == CRITICAL
    assert made["spec"]["priority"] == 2_000_000_000
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    stored = await stand.api.get(f"{admitting.PODS}/critical")
    assert stored["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


async def test_a_fraction_of_a_cpu_is_refused_with_the_name_of_the_profile(stand):
    answer = await stand.api.call("POST", admitting.PODS, a_pod("half", "1500m"))
    assert answer.status in (400, 403)
    assert "high-priority" in answer.message
    assert "whole number" in answer.message
