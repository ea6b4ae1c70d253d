"""Changes of quotas as they are tried: what they do to fair-share weights."""

import msgspec
import pytest

from cli.quota import changes
from tests.domain.quota.forests import a_forest, a_quota

STATED = {"cpu": 4000}


def tried(quota, *flags, documents=()):
    """Return the changed quota and the sentences that tell the changes."""
    changed = changes.apply(
        a_forest([quota], total={"cpu": 20000}), {quota.identity: quota}, flags, documents
    )
    return changed.forest.quota(quota.name), changed.said


@pytest.mark.parametrize("field", ["max", "hard"])
@pytest.mark.parametrize(
    ("stated", "weight"),
    [
        pytest.param({}, 14000, id="they follow it where none are stated"),
        pytest.param(STATED, 4000, id="stated ones stay, also those equal to the maximum"),
        pytest.param({"memory": 1}, 14000, id="they follow it where others are stated"),
    ],
)
def test_weights_after_a_change(field, stated, weight):
    amounts = {"cpu": 4000, "memory": 10}
    bounds = {"maximum": amounts} if field == "max" else {"hard": amounts}
    changed, _ = tried(a_quota("a", weight=stated, **bounds), f"a.{field}.cpu=14")
    assert changed.weight_of("cpu") == weight


@pytest.mark.parametrize("stated", [{}, STATED], ids=["none stated", "another stated"])
def test_a_resource_that_is_added_weighs_as_much_as_its_maximum(stated):
    changed, _ = tried(a_quota("a", {}, {"cpu": 8000}, weight=stated), "a.max.memory=9")
    assert changed.weight_of("memory") == 9


@pytest.mark.parametrize(
    ("flag", "weight", "said"),
    [
        ("a.weight.cpu=3", 3000, "a: weight of cpu 4 → 3"),
        ("a.weight.cpu=none", 8000, "a: weight of cpu 4 → none"),
        ("a.weight.memory=3", 3, "a: weight of memory 9 → 3"),
        ("a.weight.gpu=3", 3, "a: weight of gpu none → 3"),
    ],
)
def test_a_weight_is_changed_or_taken_back(flag, weight, said):
    quota = a_quota("a", {}, {"cpu": 8000, "memory": 9}, weight=STATED)
    changed, sentences = tried(quota, flag)
    assert (changed.weight_of(flag.split(".")[2].partition("=")[0]), sentences) == (weight, (said,))


@pytest.mark.parametrize(
    ("notes", "weight"),
    [
        pytest.param({}, {"cpu": 4000, "memory": 9}, id="weights that admission wrote stay"),
        pytest.param(
            {"quota.scheduling.koordinator.sh/shared-weight": '{"cpu": "7"}'},
            {"cpu": 7000, "memory": 9},
            id="a manifest states others",
        ),
    ],
)
def test_weights_of_a_changed_manifest(notes, weight):
    document = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "a", "namespace": "default", "annotations": notes},
        "spec": {"max": {"cpu": 14, "memory": 9}},
    }
    before = msgspec.structs.replace(changes.quotas.read_elastic_quota(document), weight=STATED)
    changed, _ = tried(before, documents=[document])
    assert {key: changed.weight_of(key) for key in weight} == weight
