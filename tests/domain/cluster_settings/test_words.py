"""Words in the cluster settings that name nothing are refused, each with those that are allowed."""

import json

import pytest

from domain.cluster_settings import configmap_review

THRESHOLD, QUALITY = "resource-threshold-config", "resource-qos-config"
SYSTEM, HOST = "system-config", "host-application-config"
GOLD = {"matchLabels": {"pool": "gold"}}


def review(data):
    written = {k: v if isinstance(v, str) else json.dumps(v) for k, v in data.items()}
    return configmap_review.review(configmap_review.Question(written, {}, dict))


@pytest.mark.parametrize(
    ("key", "value", "path", "words"),
    [
        pytest.param(
            THRESHOLD,
            {"clusterStrategy": {"cpuSuppressPolicy": "cfsquota"}},
            "resource-threshold-config.clusterStrategy.cpuSuppressPolicy",
            ['is "cfsquota"', "must be one of cpuset, cfsQuota"],
            id="unknown-way-to-suppress",
        ),
        pytest.param(
            THRESHOLD,
            {"nodeStrategies": [{"nodeSelector": GOLD, "cpuEvictPolicy": "evict"}]},
            "resource-threshold-config.nodeStrategies[0].cpuEvictPolicy",
            ["must be one of evictByRealLimit, evictByAllocatable"],
            id="unknown-way-to-evict",
        ),
        pytest.param(
            QUALITY,
            {"clusterStrategy": {"policies": {"cpuPolicy": "groupidentity"}}},
            "resource-qos-config.clusterStrategy.policies.cpuPolicy",
            ["must be one of groupIdentity, coreSched"],
            id="unknown-cpu-policy",
        ),
        pytest.param(
            QUALITY,
            {"clusterStrategy": {"policies": {"netQOSPolicy": "TC"}}},
            "resource-qos-config.clusterStrategy.policies.netQOSPolicy",
            ["must be one of tc, terway-qos"],
            id="unknown-network-policy",
        ),
        pytest.param(
            QUALITY,
            {"clusterStrategy": {"beClass": {"blkIOQOS": {"blocks": [{"type": "disk"}]}}}},
            "resource-qos-config.clusterStrategy.beClass.blkIOQOS.blocks[0].type",
            ["must be one of device, volumegroup, podvolume"],
            id="unknown-block-type",
        ),
        pytest.param(
            HOST,
            {"nodeConfigs": [{"nodeSelector": GOLD, "applications": [{"qos": "be"}]}]},
            "host-application-config.nodeConfigs[0].applications[0].qos",
            ["must be one of LSE, LSR, LS, BE, SYSTEM"],
            id="unknown-class",
        ),
        pytest.param(
            HOST,
            {"applications": [{"qos": "BE", "priority": "batch"}]},
            "host-application-config.applications[0].priority",
            ["must be one of koord-prod, koord-mid, koord-batch, koord-free"],
            id="unknown-priority",
        ),
    ],
)
def test_an_unknown_word_is_refused_with_the_known_ones(key, value, path, words):
    found = review({SYSTEM: {}, key: value})
    assert found is not None
    assert found.reason == configmap_review.Reason.INVALID
    (fault,) = found.faults
    assert fault.path == path
    assert all(word in fault.note for word in words), fault


def test_words_that_are_empty_say_nothing():
    data = {
        THRESHOLD: {"clusterStrategy": {"cpuSuppressPolicy": ""}},
        QUALITY: {"clusterStrategy": {"policies": {"cpuPolicy": ""}}},
        SYSTEM: {},
        HOST: {"applications": [{"name": "a", "qos": "", "priority": ""}]},
    }
    assert review(data) is None


def test_host_applications_that_cannot_be_read_are_no_reason_to_refuse():
    assert review({HOST: "{"}) is None
