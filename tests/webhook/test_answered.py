"""What reviews were answered is shown to people, the newest of each object."""

import json

import pytest
from aiohttp import web

from api.kubernetes.webhooks import admission
from process.configuration import switches
from process.runtime import metrics
from webhook import answered, handlers, registry, review

EFFECT = review.Effect("night", "labels", "tier", None, "x" * 300)


def request(name="p", **more):
    raw = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "shop",
        "operation": "CREATE",
        "object": {"metadata": {"name": name}},
        **more,
    }
    review_ = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": raw}
    return admission.decode(json.dumps(review_).encode())


@pytest.fixture
def kept(clock):
    return answered.Answers(clock, 3)


def refused(*reasons):
    return review.Decision(review.Refusal("colocation", reasons), warnings=("mind this",))


@pytest.fixture
async def page(kept, aiohttp_client):
    client = await aiohttp_client(kept.routes(web.Application()))

    async def read(query):
        answer = await client.get(f"/debug/reviews?{query}")
        return answer.status, await answer.json()

    return read


async def test_refusals_and_changes_are_shown_by_object(kept, page, clock):
    changed = review.Decision(object={"big": "object"}, effects=(EFFECT,))
    kept.put(request(), "shop/p", changed, "changed")
    await clock.advance(5)
    kept.put(request(dryRun=True), "shop/p", refused("cpu: no", "memory: no"), "refused")
    status, body = await page("pod=shop/p")
    assert status == 200
    first, second = body["answers"]
    assert first["effects"][0]["path"] == "labels[tier]"
    assert len(first["effects"][0]["after"]) < 210
    assert (second["result"], second["group"], second["dryRun"]) == ("refused", "colocation", True)
    assert second["reasons"] == ["cpu: no", "memory: no"]
    assert second["warnings"] == ["mind this"]
    assert await page("pods=shop/p") == (200, body)
    # The object that came out is not kept.
    assert all(answer.decision.object is None for answer in kept.about("pods", "shop/p"))


async def test_what_is_not_known_or_not_named_is_said(page):
    status, body = await page("pod=shop/q")
    assert (status, body["error"]) == (404, "nothing was changed or refused about shop/q lately")
    for query in ("", "pod=", "pod=a/b&x=y"):
        status, body = await page(query)
        assert (status, "name one object" in body["error"]) == (400, True)


def test_pods_whose_name_the_api_server_makes_are_found_by_its_start(kept):
    kept.put(request(""), "shop/web-*", refused("no"), "refused")
    assert len(kept.about("pods", "shop/web-x7")) == 1
    assert kept.about("pods", "shop/we") == []
    assert kept.about("nodes", "shop/web-x7") == []


def test_the_newest_counts_and_the_oldest_are_forgotten(kept):
    for number in range(5):
        kept.put(request(), f"shop/p{number}", refused("no"), "refused")
        kept.put(request(), f"shop/p{number}", refused("no, again"), "refused")
    assert [bool(kept.about("pods", f"shop/p{number}")) for number in range(5)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    (found,) = kept.about("pods", "shop/p4")
    assert found.decision.refusal.reasons == ("no, again",)


@pytest.mark.parametrize(
    ("mode", "results"),
    [("enforce", ["changed", "refused"]), ("observe", ["would_change", "would_refuse"])],
)
def test_reviews_are_kept_as_they_were_answered(kept, mode, results):
    live = switches.Switches("webhook", switches.Mode(mode))
    reviews = handlers.Admission(lambda: None, metrics.Registry(), live, kept=kept)
    decisions = [review.Decision(object={"metadata": {"name": "q"}}), refused("no")]

    def decide(asked, picture):
        return decisions.pop(0)

    route = registry.Route(decide, "pods.example.koord.sh", ("CREATE",))
    for _ in range(2):
        reviews.answer(route, request(), None)
    assert [answer.result for answer in kept.about("pods", "shop/p")] == results


def test_what_is_kept_is_short_whatever_a_tenant_writes(kept):
    """Nothing of an object is validated before it is reviewed."""
    long = "x" * 1_000_000
    effects = (
        review.Effect("night", "annotations", long, long, {"a": [long]}),
        *[EFFECT] * 10_000,
    )
    changed = review.Decision(object={}, effects=effects, warnings=(long,) * 100)
    for number in range(3):
        kept.put(request(f"p{number}"), f"shop/{number}{long}", changed, "changed")
    kept.put(request(), "shop/q", refused(*[long] * 100), "refused")
    assert len(repr(kept._kept)) < 150_000
