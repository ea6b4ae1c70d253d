"""Which pods a filter may decide: one case for each kind of preference that is not computed."""

import dataclasses
from typing import Any

import msgspec
import pytest

from domain.scoring import eligibility, objects, profile, releases
from domain.scoring.indexes import affinity, images
from tests.domain.scoring import clusters

SETTINGS = profile.ScoringProfile("default-scheduler", releases.RELEASES[36])
GPU = "example.com/gpu"


def a_pod(**spec: Any) -> objects.Pod:
    """Return a pod called web with an image of its own."""
    container = {"name": "c", "image": "registry.test/web:1", "resources": {"requests": {GPU: 1}}}
    return clusters.read_pod(
        {
            "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [container]} | spec,
        }
    )


def facts(**given: Any) -> eligibility.ClusterFacts:
    """Return what is known of a cluster where nothing stands in the way."""
    nothing = eligibility.ClusterFacts(True, affinity.TermIndex(), images.ImageIndex())
    return msgspec.structs.replace(nothing, **given)


def volume(**source: Any) -> dict[str, Any]:
    """Return the volumes of a pod: one of this source."""
    return {"volumes": [{"name": "data"} | source]}


def term(**given: Any) -> dict[str, Any]:
    """Return a term that selects the pod called web."""
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}} | given


def soft(kind: str, **given: Any) -> dict[str, Any]:
    """Return the affinity of a pod with one preferred term."""
    preferred = [{"weight": 1, "podAffinityTerm": term(**given)}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def hard(kind: str, **given: Any) -> dict[str, Any]:
    """Return the affinity of a pod with one required term."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(**given)]}}


def node_preference(operator: str, *values: str) -> dict[str, Any]:
    """Return a pod with one preferred node affinity term."""
    expression = {"key": "cores", "operator": operator, "values": list(values)}
    preferred = [{"weight": 1, "preference": {"matchExpressions": [expression]}}]
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    }


def node_requirements(terms: int = 1, expressions: int = 1, values: int = 1) -> dict[str, Any]:
    """Return a pod with required node affinity terms."""
    one = {"key": "cores", "operator": "NotIn", "values": [str(number) for number in range(values)]}
    found = [{"matchExpressions": [one] * expressions}] * terms
    required = {"nodeSelectorTerms": found}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


CLAIM = volume(persistentVolumeClaim={"claimName": "db"})
SPREAD = [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]

OWN = {
    "nothing": ({}, {}, ""),
    "another scheduler": ({"schedulerName": "batch"}, {}, eligibility.OTHER_PROFILE),
    "a cache is behind": ({}, {"synced": False}, eligibility.NOT_SYNCED),
    "resource claims": ({"resourceClaims": [{"name": "a"}]}, {}, eligibility.RESOURCE_CLAIMS),
    "a pod group": ({"schedulingGroup": {"podGroupName": "g"}}, {}, eligibility.POD_GROUP),
    "a workload, as of 1.35": ({"workloadRef": {"name": "w"}}, {}, eligibility.POD_GROUP),
    "a claim that is not bound": (CLAIM, {}, eligibility.UNBOUND_CLAIM),
    "a claim of another namespace is bound": (
        CLAIM,
        {"bound_claims": {"other/db"}},
        eligibility.UNBOUND_CLAIM,
    ),
    "a claim that is bound": (CLAIM, {"bound_claims": {"shop/db"}}, ""),
    "an ephemeral volume": (
        volume(ephemeral={"volumeClaimTemplate": {}}),
        {},
        eligibility.UNBOUND_CLAIM,
    ),
    "an ephemeral volume that is bound": (
        volume(ephemeral={"volumeClaimTemplate": {}}),
        {"bound_claims": {"shop/p-data"}},
        "",
    ),
    "a volume without claim": (volume(emptyDir={}), {}, ""),
    "a requested resource of a device class": (
        {},
        {"device_resources": {GPU}},
        eligibility.DEVICE_CLASS,
    ),
    "a resource named after a device class": (
        {
            "containers": [
                {"resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": 1}}}
            ]
        },
        {},
        eligibility.DEVICE_CLASS,
    ),
    "a scored resource of a device class": (
        {"containers": []},
        {"device_resources": {"memory"}},
        eligibility.DEVICE_CLASS,
    ),
    "a resource of no device class": ({}, {"device_resources": {"example.com/nic"}}, ""),
    "hard spread constraints": (
        {"topologySpreadConstraints": SPREAD},
        {},
        eligibility.SPREAD_CONSTRAINTS,
    ),
    "preferred pod affinity": (
        {"affinity": soft("podAffinity")},
        {},
        eligibility.POD_PREFERENCES,
    ),
    "preferred pod anti-affinity": (
        {"affinity": soft("podAntiAffinity")},
        {},
        eligibility.POD_PREFERENCES,
    ),
    "required pod affinity only filters": ({"affinity": hard("podAffinity")}, {}, ""),
    "preferred node affinity is computed": (node_preference("In", "8"), {}, ""),
    "preferred node affinity that compares": (node_preference("Gt", "8"), {}, ""),
    "preferred node affinity that compares text": (
        node_preference("Gt", "many"),
        {},
        eligibility.NODE_PREFERENCES,
    ),
    "preferred node affinity by an unknown operator": (
        node_preference("Near", "8"),
        {},
        eligibility.NODE_PREFERENCES,
    ),
    "as much required node affinity as is compared": (node_requirements(8, 8, 16), {}, ""),
    "more terms of node affinity": (node_requirements(65, 0), {}, eligibility.TOO_MUCH),
    "more requirements of node affinity": (node_requirements(1, 65), {}, eligibility.TOO_MUCH),
    "more values of node affinity": (node_requirements(2, 1, 513), {}, eligibility.TOO_MUCH),
    "more values of preferred node affinity": (
        node_preference("In", *map(str, range(1025))),
        {},
        eligibility.TOO_MUCH,
    ),
    "as many tolerations as are compared": ({"tolerations": [{"key": "a"}] * 64}, {}, ""),
    "more tolerations": ({"tolerations": [{"key": "a"}] * 65}, {}, eligibility.TOO_MUCH),
    "tolerations": ({"tolerations": [{"key": "a"}, {"operator": "Exists"}]}, {}, ""),
    "a toleration that compares": (
        {"tolerations": [{"key": "sla", "operator": "Gt", "value": "950"}]},
        {},
        eligibility.TOLERATION,
    ),
}


@pytest.mark.parametrize(("spec", "known", "reason"), OWN.values(), ids=OWN)
def test_what_a_pod_asks_for(spec: dict[str, Any], known: dict[str, Any], reason: str) -> None:
    assert eligibility.undecidable(SETTINGS, a_pod(**spec), facts(**known)) == reason


ANYWHERE: dict[str, Any] = {"namespaceSelector": {}}
TEAM = {"namespaceSelector": {"matchLabels": {"team": "blue"}}}
NO_HARD = {"hard_pod_affinity_weight": 0}
OTHERS = {
    "preferred affinity": ("shop", soft("podAffinity"), {}, True),
    "preferred anti-affinity": ("shop", soft("podAntiAffinity"), {}, True),
    "required affinity": ("shop", hard("podAffinity"), {}, True),
    "required affinity that weighs nothing": ("shop", hard("podAffinity"), NO_HARD, False),
    "preferred affinity where required weighs nothing": (
        "shop",
        soft("podAffinity"),
        NO_HARD,
        True,
    ),
    "required anti-affinity only filters": ("shop", hard("podAntiAffinity"), {}, False),
    "of other labels": (
        "shop",
        soft("podAffinity", labelSelector={"matchLabels": {"app": "db"}}),
        {},
        False,
    ),
    "without a selector": ("shop", soft("podAffinity", labelSelector=None), {}, False),
    "of another namespace": ("other", soft("podAffinity"), {}, False),
    "that names the namespace": ("other", soft("podAffinity", namespaces=["shop"]), {}, True),
    "that selects every namespace": ("other", soft("podAffinity", **ANYWHERE), {}, True),
    "that selects the namespace": ("other", soft("podAffinity", **TEAM), {}, True),
    "that selects other namespaces": (
        "other",
        hard("podAffinity", namespaceSelector={"matchLabels": {"team": "red"}}),
        {},
        False,
    ),
    "while the plug-in is disabled": (
        "shop",
        soft("podAffinity"),
        {"weights": ((profile.FIT, 1),)},
        False,
    ),
}


@pytest.mark.parametrize(("namespace", "terms", "changed", "scored"), OTHERS.values(), ids=OTHERS)
def test_terms_of_pods_on_nodes(
    namespace: str, terms: dict[str, Any], changed: dict[str, Any], scored: bool
) -> None:
    index = affinity.TermIndex()
    index.set_namespace("shop", {"team": "blue"})
    placed = clusters.read_pod({"metadata": {"namespace": namespace}, "spec": {"affinity": terms}})
    settings = dataclasses.replace(SETTINGS, **changed)
    known = facts(terms=index)
    assert eligibility.undecidable(settings, a_pod(), known) == ""
    index.add(affinity.read(placed))
    index.add(affinity.read(placed))
    reason = eligibility.OTHERS_AFFINITY if scored else ""
    assert eligibility.undecidable(settings, a_pod(), known) == reason
    index.remove(affinity.read(placed))
    assert eligibility.undecidable(settings, a_pod(), known) == reason
    index.remove(affinity.read(placed))
    assert eligibility.undecidable(settings, a_pod(), known) == ""


def test_the_labels_of_a_namespace_may_be_unknown_or_change() -> None:
    index = affinity.TermIndex()
    placed = {"metadata": {"namespace": "other"}, "spec": {"affinity": soft("podAffinity", **TEAM)}}
    index.add(affinity.read(clusters.read_pod(placed)))
    assert eligibility.undecidable(SETTINGS, a_pod(), facts(terms=index))
    index.set_namespace("shop", {"team": "red"})
    assert not eligibility.undecidable(SETTINGS, a_pod(), facts(terms=index))
    index.set_namespace("shop", {"team": "blue"})
    assert eligibility.undecidable(SETTINGS, a_pod(), facts(terms=index))
    index.remove_namespace("shop")
    assert eligibility.undecidable(SETTINGS, a_pod(), facts(terms=index))


HELD = objects.Image(("registry.test/web:1",), 100)
LARGER = objects.Image(("registry.test/web:1",), 200)
OTHER = objects.Image(("registry.test/db:1",), 100)
WITHOUT_IMAGES = ((profile.FIT, 1),)
IMAGES = {
    "no node has it": (36, profile.WEIGHTS, [], ""),
    "nodes agree": (36, profile.WEIGHTS, [HELD, HELD], ""),
    "nodes disagree": (36, profile.WEIGHTS, [HELD, LARGER], eligibility.IMAGE_SIZES),
    "nodes disagree where images are not scored": (36, WITHOUT_IMAGES, [HELD, LARGER], ""),
    "nodes have others": (28, profile.WEIGHTS, [OTHER], ""),
    "1.28 counts nodes at an older moment": (
        28,
        profile.WEIGHTS,
        [HELD],
        eligibility.IMAGE_COUNTS,
    ),
    "1.29 does not": (29, profile.WEIGHTS, [HELD], ""),
}


@pytest.mark.parametrize(("minor", "weights", "held", "reason"), IMAGES.values(), ids=IMAGES)
def test_images(
    minor: int, weights: tuple[tuple[str, int], ...], held: list[objects.Image], reason: str
) -> None:
    index = images.ImageIndex()
    for row, image in enumerate(held):
        index.set(row, [image])
    settings = dataclasses.replace(SETTINGS, release=releases.RELEASES[minor], weights=weights)
    assert eligibility.undecidable(settings, a_pod(), facts(images=index)) == reason


def test_a_profile_that_is_not_computed_comes_first() -> None:
    settings = dataclasses.replace(SETTINGS, unsupported="NodeAffinity has addedAffinity")
    found = eligibility.undecidable(settings, a_pod(), facts(synced=False))
    assert found == "NodeAffinity has addedAffinity"


def test_every_reason_has_a_case() -> None:
    shown = {reason for _, _, reason in OWN.values()} | {case[3] for case in IMAGES.values()}
    assert shown | {eligibility.OTHERS_AFFINITY} == {"", *eligibility.REASONS}
