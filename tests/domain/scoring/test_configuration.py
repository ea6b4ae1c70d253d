"""Profiles of a KubeSchedulerConfiguration: what they mean for scores and what is not computed."""

import pytest
import yaml

from domain.scoring import configuration, node_resources, profile

OURS = configuration.Surroundings(36, "http://127.0.0.1:8080/v1")
WEIGHTS = dict(profile.WEIGHTS)


def read(text: str, minor: int = 36, **gates: bool) -> profile.ScoringProfile:
    """Read the default profile of a configuration."""
    surroundings = configuration.Surroundings(minor, OURS.extender_url, gates)
    return configuration.read(yaml.safe_load(text) or {}, "default-scheduler", surroundings)


def arguments(plugin: str, text: str) -> str:
    """Return a configuration with the arguments of one plug-in."""
    return f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {text}}}]}}]"


def plugins(text: str) -> str:
    """Return a configuration with these plug-ins."""
    return f"profiles: [{{plugins: {text}}}]"


PROBLEMS: dict[str, tuple[str, str]] = {
    "nothing is configured": ("", ""),
    "another API version": (
        "apiVersion: kubescheduler.config.k8s.io/v1beta3",
        "the configuration is not of kubescheduler.config.k8s.io/v1",
    ),
    "another name": (
        "profiles: [{schedulerName: batch}]",
        "the scheduler has no profile of this name",
    ),
    "our own extender": (
        "extenders: [{urlPrefix: 'http://127.0.0.1:8080/v1/', filterVerb: filter}]",
        "",
    ),
    "another extender that filters": (
        "extenders: [{urlPrefix: 'http://other', filterVerb: filter}]",
        "another extender filters or scores",
    ),
    "another extender that scores": (
        "extenders: [{urlPrefix: 'http://other', prioritizeVerb: prioritize}]",
        "another extender filters or scores",
    ),
    "another extender that preempts": (
        "extenders: [{urlPrefix: 'http://other', preemptVerb: preempt}]",
        "",
    ),
    "our extender is asked about some resources": (
        "extenders: [{urlPrefix: 'http://127.0.0.1:8080/v1', managedResources: [{name: a/b}]}]",
        "an extender has managedResources",
    ),
    "a score plug-in of somebody else": (
        plugins("{score: {enabled: [{name: Trimaran, weight: 3}]}}"),
        "score plug-in Trimaran is not known",
    ),
    "a plug-in of somebody else everywhere": (
        plugins("{multiPoint: {enabled: [{name: Coscheduling}]}}"),
        "score plug-in Coscheduling is not known",
    ),
    "a filter of somebody else": (plugins("{filter: {enabled: [{name: Coscheduling}]}}"), ""),
    "in-tree plug-ins that do not score": (
        plugins("{multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}"),
        "",
    ),
    "preScore": (
        plugins("{preScore: {disabled: [{name: TaintToleration}]}}"),
        "the profile changes the plug-ins of preScore",
    ),
    "addedAffinity": (
        arguments("NodeAffinity", "{addedAffinity: {requiredDuringScheduling: {}}}"),
        "NodeAffinity has addedAffinity",
    ),
    "default constraints": (
        arguments(
            "PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 1}]}"
        ),
        "PodTopologySpread has defaultConstraints",
    ),
    "no default constraints": (arguments("PodTopologySpread", "{defaultingType: List}"), ""),
    "terms of existing pods are ignored": (
        arguments("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: true}"),
        "InterPodAffinity has ignorePreferredTermsOfExistingPods",
    ),
    "an argument from the future": (
        arguments("NodeResourcesFit", "{scoringFormula: {}}"),
        "argument scoringFormula of NodeResourcesFit is not known",
    ),
    "an argument of a plug-in that takes none": (
        arguments("ImageLocality", "{layers: true}"),
        "argument layers of ImageLocality is not known",
    ),
    "an unknown strategy": (
        arguments("NodeResourcesFit", "{scoringStrategy: {type: Balanced}}"),
        "the scoringStrategy of NodeResourcesFit cannot be read",
    ),
    "a ratio without a shape": (
        arguments("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}"),
        "the scoringStrategy of NodeResourcesFit cannot be read",
    ),
    "a shape that does not rise": (
        arguments(
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio:"
            " {shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}}",
        ),
        "the scoringStrategy of NodeResourcesFit cannot be read",
    ),
    "no configuration at all": ("profiles: 7", "the configuration cannot be read"),
    "not even plug-ins": ("profiles: [{plugins: [1]}]", "the configuration cannot be read"),
}


@pytest.mark.parametrize(("text", "reason"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_not_computed_is_said(text: str, reason: str) -> None:
    assert read(text).unsupported == reason


@pytest.mark.parametrize(("minor", "known"), [(27, False), (28, True), (37, True), (38, False)])
def test_minor_versions(minor: int, known: bool) -> None:
    reason = "" if known else f"the scores of Kubernetes 1.{minor} are not known"
    assert read("", minor).unsupported == reason


GATES = {
    "at its default": (36, {"PodLevelResources": True}, ""),
    "off": (36, {"PodLevelResources": False}, "PodLevelResources"),
    "on before its time": (33, {"PodLevelResources": True}, "PodLevelResources"),
    "one that scores do not depend on": (36, {"GenericWorkload": True}, ""),
    "on, never by default": (37, {"VolumeCapacityPriority": True}, "VolumeCapacityPriority"),
}


@pytest.mark.parametrize(("minor", "gates", "named"), GATES.values(), ids=GATES)
def test_feature_gates(minor: int, gates: dict[str, bool], named: str) -> None:
    reason = f"feature gate {named} is not at its default" if named else ""
    assert read("", minor, **gates).unsupported == reason


SCORED: dict[str, tuple[str, dict[str, int]]] = {
    "defaults": ("", WEIGHTS),
    "one weight, everywhere": (
        plugins("{multiPoint: {enabled: [{name: ImageLocality, weight: 10}]}}"),
        WEIGHTS | {"ImageLocality": 10},
    ),
    "no weight is 1": (
        plugins("{multiPoint: {enabled: [{name: TaintToleration}]}}"),
        WEIGHTS | {"TaintToleration": 1},
    ),
    "score outweighs multiPoint": (
        plugins(
            "{multiPoint: {enabled: [{name: ImageLocality, weight: 10}]},"
            " score: {enabled: [{name: ImageLocality, weight: 7}]}}"
        ),
        WEIGHTS | {"ImageLocality": 7},
    ),
    "disabled for score": (
        plugins("{score: {disabled: [{name: ImageLocality}]}}"),
        {name: weight for name, weight in WEIGHTS.items() if name != "ImageLocality"},
    ),
    "disabled everywhere and enabled anew": (
        plugins(
            "{multiPoint: {disabled: [{name: '*'}],"
            " enabled: [{name: NodeResourcesFit, weight: 5}]}}"
        ),
        {"NodeResourcesFit": 5},
    ),
    "all disabled for score but one": (
        plugins("{score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 4}]}}"),
        {"NodeAffinity": 4},
    ),
    "disabled for score and enabled with another weight": (
        plugins(
            "{score: {disabled: [{name: NodeAffinity}],"
            " enabled: [{name: NodeAffinity, weight: 4}]}}"
        ),
        WEIGHTS | {"NodeAffinity": 4},
    ),
    "without default constraints nothing spreads": (
        arguments("PodTopologySpread", "{defaultingType: List, defaultConstraints: []}"),
        {name: weight for name, weight in WEIGHTS.items() if name != "PodTopologySpread"},
    ),
}


@pytest.mark.parametrize(("text", "weights"), SCORED.values(), ids=SCORED)
def test_weights(text: str, weights: dict[str, int]) -> None:
    assert dict(read(text).weights) == weights


def test_arguments_are_read() -> None:
    found = read("""
percentageOfNodesToScore: 30
extenders:
- {urlPrefix: http://127.0.0.1:8080/v1, filterVerb: filter, prioritizeVerb: prioritize, weight: 2}
- {urlPrefix: http://127.0.0.1:8080/v1, bindVerb: bind}
profiles:
- percentageOfNodesToScore: 100
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 3}, {name: kubernetes.io/batch-cpu}]
  - {name: NodeResourcesBalancedAllocation, args: {resources: [{name: memory}]}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 0}}
""")
    assert found.unsupported == ""
    assert found.fit == node_resources.Fit(
        node_resources.Strategy.MOST_ALLOCATED, (("cpu", 3), ("kubernetes.io/batch-cpu", 1))
    )
    assert found.balanced == ("memory",)
    assert found.resources == ("cpu", "kubernetes.io/batch-cpu", "memory")
    assert found.hard_pod_affinity_weight == 0
    assert found.percentage_of_nodes_to_score == 100
    assert found.extender_weight == 2


def test_a_profile_is_found_by_its_name() -> None:
    config = {
        "percentageOfNodesToScore": 40,
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 5}],
    }
    assert configuration.read(config, "a", OURS).percentage_of_nodes_to_score == 40
    assert configuration.read(config, "b", OURS).percentage_of_nodes_to_score == 5
    assert configuration.read(config, "c", OURS).unsupported
