"""Native resources become the band's own; everything else stays."""

from typing import Any

import pytest

from api import names
from tests import builders
from webhook import review
from webhook.rules.pods import pod_resources


def _resources(pod: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]["resources"]
    return found


@pytest.mark.parametrize(
    ("priority", "cpu", "memory"),
    [
        (5000, names.BATCH_CPU, names.BATCH_MEMORY),
        (7000, names.MID_CPU, names.MID_MEMORY),
        (9000, "cpu", "memory"),
        (3000, "cpu", "memory"),
    ],
    ids=["batch", "mid", "prod", "free"],
)
def test_the_band_decides(priority: int, cpu: str, memory: str) -> None:
    pod = builders.a_pod(cpu="1500m", memory="1Gi", priority=priority)
    changed = pod_resources.rewrite(pod)
    assert not isinstance(changed, review.Refusal)
    expected = {cpu: "1500" if cpu != "cpu" else "1500m", memory: "1Gi"}
    assert _resources(changed)["requests"] == expected


def test_a_limit_without_request_becomes_the_request_too() -> None:
    pod = builders.a_pod(requests={}, limits={"cpu": "2"}, priority=5000)
    changed = pod_resources.rewrite(pod)
    assert not isinstance(changed, review.Refusal)
    assert _resources(changed) == {
        "limits": {names.BATCH_CPU: "2k"},
        "requests": {names.BATCH_CPU: "2k"},
    }


def test_init_containers_move_as_well_and_the_overhead_stays() -> None:
    pod = builders.a_pod(priority=5000)
    pod["spec"]["overhead"] = {"cpu": "100m", "ephemeral-storage": "1Gi"}
    pod["spec"]["initContainers"] = [
        {"name": "i", "resources": {"requests": {"cpu": "1"}}},
        {"name": "bare"},
    ]
    changed = pod_resources.rewrite(pod)
    assert not isinstance(changed, review.Refusal)
    assert changed["spec"]["overhead"] == {"cpu": "100m", "ephemeral-storage": "1Gi"}
    first, second = changed["spec"]["initContainers"]
    assert first["resources"]["requests"] == {names.BATCH_CPU: "1k"}
    assert second == {"name": "bare"}


def test_rewriting_twice_is_rewriting_once() -> None:
    once = pod_resources.rewrite(builders.a_pod(cpu="1", priority=5000))
    assert not isinstance(once, review.Refusal)
    assert pod_resources.rewrite(once) == once


def test_an_unreadable_amount_is_refused() -> None:
    refusal = pod_resources.rewrite(builders.a_pod(cpu="much", priority=5000))
    assert isinstance(refusal, review.Refusal)
    assert '"much" is no quantity' in refusal.message
