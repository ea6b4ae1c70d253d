"""Changes of quotas as they are tried: what a new maximum does to fair-share weights."""

import msgspec
import pytest

from cli.quota import changes
from domain.quota import model
from tests.domain.quota.forests import a_forest, a_quota


@pytest.mark.parametrize("field", ["max", "hard"])
@pytest.mark.parametrize(
    ("states", "weight"),
    [
        pytest.param(False, {"cpu": 14000}, id="they follow it where none are stated"),
        pytest.param(True, {"cpu": 4000}, id="stated ones stay, also those equal to the maximum"),
    ],
)
def test_weights_after_a_change(field, states, weight):
    quota = a_quota("a", {}, {"cpu": 4000})
    if field == "hard":
        quota = msgspec.structs.replace(quota, hard=quota.maximum, maximum={})
    quota = msgspec.structs.replace(quota, weight={"cpu": 4000})
    forest = a_forest([quota], [], {"cpu": 20000}, model.Rules())
    weighed = {quota.identity} if states else ()
    known = {quota.identity: quota}
    changed = changes.apply(forest, known, [f"a.{field}.cpu=14"], weighed=weighed)
    assert changed.forest.quota("a").weight == weight


@pytest.mark.parametrize(
    ("notes", "weight"),
    [
        pytest.param({}, {"cpu": 4000}, id="weights that admission wrote stay"),
        pytest.param(
            {"quota.scheduling.koordinator.sh/shared-weight": '{"cpu": "7"}'},
            {"cpu": 7000},
            id="a manifest states others",
        ),
    ],
)
def test_weights_of_a_changed_manifest(notes, weight):
    document = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "a", "namespace": "default", "annotations": notes},
        "spec": {"max": {"cpu": 14}},
    }
    before = msgspec.structs.replace(
        changes.quotas.read_elastic_quota(document), weight={"cpu": 4000}
    )
    forest = a_forest([before], [], {"cpu": 20000}, model.Rules())
    known = {before.identity: before}
    changed = changes.apply(forest, known, (), [document], weighed={before.identity})
    assert changed.forest.quota("a").weight == weight
