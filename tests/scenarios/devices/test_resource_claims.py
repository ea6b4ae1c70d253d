"""One device is given away once, by a ResourceClaim or to a pod; both together are named."""

import dataclasses

import pytest
import pytest_asyncio

from api import resources
from cli.devices import reader
from cli.doctor.checkup import devices as check
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.devices import dra_driver
from tests.planes.devices.device_recount import minors
from tests.planes.install import checkups
from tests.scenarios.devices.conftest import machines, unmanaged  # noqa: F401 - fixtures

OFFERING = (resources.DEVICES, resources.RESOURCE_SLICES)
SERVED_SINCE = (1, 34)


@pytest_asyncio.fixture(loop_scope="session")
async def driver(machines, plane):  # noqa: F811
    """A driver without devices so far; its objects go with the test."""
    if plane.release < SERVED_SINCE:
        pytest.skip("this release does not serve resource.k8s.io/v1")
    made = dra_driver.Driver(machines.api, machines.here.namespace)
    yield made
    await made.remove()


def gpus(node, *numbers):
    return [(f"gpu-{minor}", {"uuid": f"GPU-{node}-{minor}"}) for minor in numbers]


async def page(machines, node):  # noqa: F811
    _, found = await machines.pages(node)
    return found


async def held(machines, node, **by_claim):  # noqa: F811
    """Wait until the extender knows which claim holds which GPU of a node."""
    wanted = {int(minor[1:]): claim for minor, claim in by_claim.items()}

    async def there():
        listed = (await page(machines, node)).get("devices", ())
        found = {one["minor"]: one["resourceClaim"] for one in listed if one["type"] == "gpu"}
        return {minor: claim for minor, claim in found.items() if claim} == wanted

    await raw.eventually(there, raw.PATIENCE)


async def status(plane, node):
    """What `koord status --devices` reads of a node."""
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    async with clients.Client(access, clock=clocks.SystemClock(), user_agent="status") as kube:
        found, notes = await reader.read(kube)
    assert notes == ()
    (one,) = [each for each in found.nodes if each.name == node]
    return one


async def test_a_gpu_that_a_claim_holds_is_given_to_no_pod(machines, driver, plane):  # noqa: F811
    node = await machines.machine("pair")
    await driver.offers(node, *gpus(node, 0, 1))
    claim = await driver.claim("training", "any")
    await driver.given(claim, node, "gpu-0")
    name = f"{machines.here.namespace}/training"
    await held(machines, node, m0=name)
    await machines.share("first", 100)
    (first,) = await machines.on(node, "first")
    assert minors(first) == [1]
    await machines.share("second", 50)
    await machines.here.refused("second", "Insufficient GPU Devices")
    shown = await status(plane, node)
    assert [(row.device.minor, row.claims) for row in shown.rows if row.device.kind == "gpu"] == [
        (0, (name,)),
        (1, ()),
    ]
    assert shown.problems == ()
    assert [one.minor for one, _ in shown.offered_twice] == [0, 1]
    await driver.given_back(claim)
    (second,) = await machines.on(node, "second")
    assert minors(second) == [0]
    await machines.agree()


async def test_what_a_pod_and_a_claim_hold_is_named(machines, driver, plane):  # noqa: F811
    """kube-scheduler does not see what pods hold by annotation, and gives it away."""
    node = await machines.machine("pair")
    await machines.share("first", 200)
    await machines.on(node, "first")
    await driver.offers(node, *gpus(node, 0, 1))
    claim = await driver.claim("late", "any")
    await driver.given(claim, node, "gpu-1")
    await held(machines, node, m1=f"{machines.here.namespace}/late")
    assert (await page(machines, node))["heldTwice"] == [
        f"gpu 1: pods and ResourceClaim {machines.here.namespace}/late hold it"
    ]
    shown = await status(plane, node)
    assert [one.reason for one in shown.problems] == ["HeldByClaimToo"]
    assert f"ResourceClaim {machines.here.namespace}/late hold gpu 1" in shown.problems[0].text


async def test_the_doctor_names_what_both_offer(machines, driver, plane):  # noqa: F811
    node = await machines.machine("pair")
    await driver.offers(node, *gpus(node, 1))
    shown = await status(plane, node)
    ((known, there),) = shown.offered_twice
    assert (known.minor, there) == (1, f"{dra_driver.DRIVER}/{node}/gpu-1")
    api = machines.api
    both = [(await api.get(kind.path()))["items"] for kind in OFFERING]
    known_facts = dataclasses.replace(checkups.healthy(), devices=both[0], resource_slices=both[1])
    (found,) = [one for one in check.CHECK.examine(known_facts) if one.object == node]
    assert found.sentence == (
        f"a driver offers devices of node {node} too: gpu 1 as {dra_driver.DRIVER}/{node}/gpu-1"
    )


async def test_a_claim_that_the_scheduler_itself_serves(machines, driver, plane):  # noqa: F811
    """A pod gets a GPU by its claim, and no other pod gets that GPU by percentage."""
    if plane.name != "real":
        pytest.skip("only kube-scheduler allocates claims")
    node = await machines.machine("pair")
    await driver.offers(node, *gpus(node, 0, 1))
    kind = f"{machines.here.namespace}-gpu"
    await driver.device_class(kind)
    path = await driver.claim("served", kind)
    more = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "served"}]}
    await machines.here.pod("by-claim", requests={"cpu": "100m"}, **more)
    await machines.on(node, "by-claim")
    found = await machines.api.get(path)
    (result,) = found["status"]["allocation"]["devices"]["results"]
    minor = int(result["device"].removeprefix("gpu-"))
    await held(machines, node, **{f"m{minor}": f"{machines.here.namespace}/served"})
    await machines.share("by-percent", 100)
    (other,) = await machines.on(node, "by-percent")
    assert minors(other) == [1 - minor]
    await machines.share("third", 10)
    await machines.here.refused("third", "Insufficient GPU Devices")
    assert (await status(plane, node)).problems == ()
