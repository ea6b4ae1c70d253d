"""What the descheduler may write, on a real API server: notes, cordons and its Reservations."""

import pytest
import pytest_asyncio

from api import names, resources
from tests.manager.reservations import reserved
from tests.planes import definitions, raw
from tests.planes.install import policed

USERS = "descheduler-accounts"
PODS = resources.PODS.path(USERS)
NODES, KIND = resources.NODES, resources.RESERVATIONS
DRY = {"dryRun": "All"}
NOW = {"gracePeriodSeconds": "0"}
OURS = {names.LABEL_CREATED_BY: "koord-descheduler"}
CORDONS = ("descheduler.cordonsNodes=true",)
pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(real_plane):
    """The account and policy of the chart, a pod, a node and two Reservations."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        policed.standing(api, "beside", *CORDONS) as it,
    ):
        await policed.namespace(api, USERS)
        await definitions.serve(api, "Reservation")
        await policed.account(api, policed.NAMESPACE, "koord-descheduler")
        container = {"name": "c", "image": "x:1"}
        body = {"metadata": {"name": "pod"}, "spec": {"containers": [container]}}
        await api.call("POST", PODS, body)
        await api.call("POST", NODES.path(), {"metadata": {"name": "policed"}})
        for name, labels in (("ours", OURS), ("theirs", {})):
            metadata = {"name": name, "labels": labels}
            await api.call("POST", KIND.path(), {**reserved.raw(), "metadata": metadata})
        try:
            yield it
        finally:
            await api.call("DELETE", f"{PODS}/pod", query=NOW)
            await api.call("DELETE", NODES.path(name="policed"))
            for name in ("ours", "theirs"):
                await api.call("DELETE", KIND.path(name=name))


def noted(*keys):
    return {"metadata": {"annotations": dict.fromkeys(keys, "1")}}


def labelled(**labels):
    return {"metadata": {"labels": labels}}


POD, NODE = f"{PODS}/pod", NODES.path(name="policed")
OWN, OTHER = KIND.path(name="ours"), KIND.path(name="theirs")
TAINT = {"key": "mine", "effect": "NoExecute"}
ALLOWED = {
    "notes on a pod": (
        POD,
        noted(names.ANNOTATION_SOFT_EVICTION, names.ANNOTATION_POD_DELETION_COST),
    ),
    "cordon": (NODE, {"spec": {"unschedulable": True}}),
    "order": (OTHER, labelled(**{names.LABEL_RESERVATION_ORDER: "7"})),
    "open its own Reservation": (OWN, {"spec": {"unschedulable": False}}),
    "close its own Reservation": (OWN, {"spec": {"unschedulable": True}}),
}
REFUSED = {
    "another note": (POD, noted("mine"), "of a Pod only"),
    "a label of a pod": (POD, labelled(mine="1"), "of a Reservation only"),
    "a deadline": (POD, {"spec": {"activeDeadlineSeconds": 30}}, "may not change the spec"),
    "a finalizer": (
        POD,
        {"metadata": {"finalizers": ["example.com/mine"]}},
        "neither owner references nor finalizers",
    ),
    "a label of a node": (NODE, labelled(mine="1"), "of a Reservation only"),
    "a taint": (NODE, {"spec": {"taints": [TAINT]}}, "node.kubernetes.io/unschedulable only"),
    "an address block": (NODE, {"spec": {"podCIDR": "10.0.0.0/24"}}, "unschedulable only"),
    "a lifetime": (OWN, {"spec": {"ttl": "2h"}}, "write unschedulable only"),
    "close one of others": (OTHER, {"spec": {"unschedulable": True}}, "write unschedulable only"),
    "a label of a Reservation": (OTHER, labelled(**OURS), "of a Reservation only"),
}


@pytest.mark.parametrize(("path", "change"), ALLOWED.values(), ids=ALLOWED)
async def test_what_it_has_to_write_it_may_write(installed, path, change):
    caller = await installed.user("koord-descheduler")
    answer = await caller.call("PATCH", path, change, kind=raw.MERGE_PATCH, query=DRY)
    assert answer.status == 200, answer.message


@pytest.mark.parametrize(("path", "change", "said"), REFUSED.values(), ids=REFUSED)
async def test_nothing_else_of_what_it_may_patch_is_changed(installed, path, change, said):
    caller = await installed.user("koord-descheduler")
    answer = await caller.call("PATCH", path, change, kind=raw.MERGE_PATCH, query=DRY)
    assert answer.status in (403, 422), answer.message
    assert said in answer.message


@pytest.mark.parametrize(("labels", "status"), [(OURS, 201), ({}, 422)], ids=["ours", "others"])
async def test_it_creates_reservations_under_its_own_mark(installed, labels, status):
    caller = await installed.user("koord-descheduler")
    body = {**reserved.raw(), "metadata": {"name": "made", "labels": labels}}
    answer = await caller.call("POST", KIND.path(), body, query=DRY)
    assert answer.status == status, answer.message


@pytest.mark.parametrize(("path", "status"), [(OWN, 200), (OTHER, 422)], ids=["ours", "others"])
async def test_it_deletes_no_reservation_that_others_made(installed, path, status):
    caller = await installed.user("koord-descheduler")
    answer = await caller.call("DELETE", path, query=DRY)
    assert answer.status == status, answer.message


@pytest.mark.parametrize(
    ("verb", "path"),
    [("DELETE", POD), ("DELETE", NODE), ("POST", PODS), ("GET", resources.SECRETS.path(USERS))],
    ids=["delete a pod", "delete a node", "create a pod", "read secrets"],
)
async def test_what_it_is_not_granted(installed, verb, path):
    caller = await installed.user("koord-descheduler")
    body = {"metadata": {"name": "x"}} if verb == "POST" else None
    answer = await caller.call(verb, path, body, query=DRY)
    assert answer.status == 403, answer.message
