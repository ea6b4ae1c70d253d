"""Read a KubeSchedulerConfiguration: which profile scores how, and what is not computed here."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from domain.scoring import node_resources, profile, releases

Document = Mapping[str, Any]

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
STOCK_PROFILE: Final = "default-scheduler"

NOT_SCORING: Final = frozenset(
    {
        *("SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "NodePorts"),
        *("VolumeRestrictions", "NodeVolumeLimits", "EBSLimits", "GCEPDLimits", "AzureDiskLimits"),
        *("VolumeZone", "DefaultPreemption", "DefaultBinder", "GangScheduling"),
        *("NodeDeclaredFeatures", "DeferredPodScheduling", "TopologyPlacementGenerator"),
        "PodGroupPodsCount",
    }
)
"""In-tree plug-ins that have no score for a single pod."""
_SCORING: Final = frozenset(name for name, _ in profile.WEIGHTS)

_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    profile.FIT: frozenset(
        {"ignoredResources", "ignoredResourceGroups", "scoringStrategy", "placementScoringStrategy"}
    ),
    profile.BALANCE: frozenset({"resources"}),
    profile.SPREAD: frozenset({"defaultConstraints", "defaultingType"}),
    profile.POD_AFFINITY: frozenset(
        {"hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}
    ),
    profile.VOLUMES: frozenset({"bindTimeoutSeconds", "shape"}),
    profile.DEVICES: frozenset({"filterTimeout", "bindingTimeout"}),
    profile.NODE_AFFINITY: frozenset({"addedAffinity"}),
    profile.TAINTS: frozenset(),
    profile.IMAGES: frozenset(),
}
"""Arguments of score plug-ins that are known."""

_NEVER: Final = 1 << 10
_GATES: Final[Mapping[str, int]] = {
    "SidecarContainers": 29,
    "InPlacePodVerticalScaling": 33,
    "PodLevelResources": 34,
    "InPlacePodLevelResourcesVerticalScaling": 36,
    "DRAExtendedResource": 36,
    "StorageCapacityScoring": 37,
    "VolumeCapacityPriority": _NEVER,
    "TaintTolerationComparisonOperators": _NEVER,
    "DRANodeAllocatableResources": _NEVER,
    "NodeInclusionPolicyInPodTopologySpread": releases.OLDEST,
}
"""Feature gates that change scores, and the minor version since which they are on by default."""


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """What a scheduler's configuration file does not say of itself."""

    minor: int
    """Minor version of kube-scheduler."""
    extender_url: str
    """`urlPrefix` of our own entries; other extenders may score as well."""
    feature_gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    """Feature gates on the scheduler's command line."""


def read(
    config: Document, scheduler_name: str, surroundings: Surroundings
) -> profile.ScoringProfile:
    """Return the profile of a scheduler name; `unsupported` says what is not computed, if any."""
    try:
        return _read(config, scheduler_name, surroundings)
    except (TypeError, ValueError, KeyError, AttributeError):
        return _nothing(scheduler_name, surroundings, "the configuration cannot be read")


def _nothing(
    scheduler_name: str, surroundings: Surroundings, reason: str
) -> profile.ScoringProfile:
    nearest = releases.RELEASES.get(surroundings.minor, releases.RELEASES[releases.NEWEST])
    return profile.ScoringProfile(scheduler_name, nearest, unsupported=reason)


def _read(
    config: Document, scheduler_name: str, surroundings: Surroundings
) -> profile.ScoringProfile:
    release = releases.RELEASES.get(surroundings.minor)
    written = _profile(config, scheduler_name)
    reason = next(_problems(config, written, surroundings), "")
    if release is None or written is None:
        return _nothing(scheduler_name, surroundings, reason)
    arguments = _arguments(written)
    fit = _fit(arguments[profile.FIT])
    own = [one for one in config.get("extenders") or () if _is_ours(one, surroundings)]
    return profile.ScoringProfile(
        scheduler_name=scheduler_name,
        release=release,
        weights=_weights(written, arguments),
        fit=fit or profile.DEFAULT_FIT,
        balanced=_resources(arguments[profile.BALANCE]),
        hard_pod_affinity_weight=int(
            _given(arguments[profile.POD_AFFINITY], "hardPodAffinityWeight", 1)
        ),
        percentage_of_nodes_to_score=_percentage(config, written),
        extender_weight=int(
            next((one.get("weight") or 1 for one in own if one.get("prioritizeVerb")), 1)
        ),
        unsupported=reason,
    )


def _profile(config: Document, scheduler_name: str) -> Document | None:
    profiles: Sequence[Document] = config.get("profiles") or ({},)
    if len(profiles) == 1 and not profiles[0].get("schedulerName"):
        return profiles[0] if scheduler_name == STOCK_PROFILE else None
    return next((one for one in profiles if one.get("schedulerName") == scheduler_name), None)


def _problems(
    config: Document, written: Document | None, surroundings: Surroundings
) -> Iterator[str]:
    """Yield why the totals of a profile cannot be computed, the most general first."""
    minor = surroundings.minor
    if minor not in releases.RELEASES:
        yield f"the scores of Kubernetes 1.{minor} are not known"
    if config.get("apiVersion", API_VERSION) != API_VERSION:
        yield f"the configuration is not of {API_VERSION}"
    for gate, on in surroundings.feature_gates.items():
        if gate in _GATES and on != (minor >= _GATES[gate]):
            yield f"feature gate {gate} is not at its default"
    yield from _extender_problems(config, surroundings)
    if written is None:
        yield "the scheduler has no profile of this name"
    else:
        yield from _profile_problems(written)


def _is_ours(extender: Document, surroundings: Surroundings) -> bool:
    return str(extender.get("urlPrefix", "")).rstrip("/") == surroundings.extender_url.rstrip("/")


def _extender_problems(config: Document, surroundings: Surroundings) -> Iterator[str]:
    for extender in config.get("extenders") or ():
        if extender.get("managedResources"):
            yield "an extender has managedResources"
        if _is_ours(extender, surroundings):
            continue
        if extender.get("filterVerb") or extender.get("prioritizeVerb"):
            yield "another extender filters or scores"


def _profile_problems(written: Document) -> Iterator[str]:
    plugins = written.get("plugins") or {}
    stage = plugins.get("preScore") or {}
    if stage.get("enabled") or stage.get("disabled"):
        yield "the profile changes the plug-ins of preScore"
    for point in ("score", "multiPoint"):
        for one in (plugins.get(point) or {}).get("enabled") or ():
            name = one.get("name", "")
            if name not in _SCORING and not (point == "multiPoint" and name in NOT_SCORING):
                yield f"score plug-in {name} is not known"
    for name, arguments in _arguments(written).items():
        yield from _argument_problems(name, arguments)


def _argument_problems(name: str, arguments: Document) -> Iterator[str]:
    unknown = sorted(
        key for key in arguments if key not in {"apiVersion", "kind"} | _ARGUMENTS[name]
    )
    if unknown:
        yield f"argument {unknown[0]} of {name} is not known"
    if arguments.get("addedAffinity"):
        yield "NodeAffinity has addedAffinity"
    if arguments.get("defaultConstraints"):
        yield "PodTopologySpread has defaultConstraints"
    if arguments.get("ignorePreferredTermsOfExistingPods"):
        yield "InterPodAffinity has ignorePreferredTermsOfExistingPods"
    if name == profile.FIT and _fit(arguments) is None:
        yield "the scoringStrategy of NodeResourcesFit cannot be read"


def _arguments(written: Document) -> dict[str, Document]:
    """Return the arguments of each score plug-in, empty where none are given."""
    given = {one.get("name"): one.get("args") or {} for one in written.get("pluginConfig") or ()}
    return {name: given.get(name, {}) for name, _ in profile.WEIGHTS}


def _given(arguments: Document, name: str, otherwise: Any) -> Any:
    value = arguments.get(name)
    return otherwise if value is None else value


def _percentage(config: Document, written: Document) -> int:
    for document in (written, config):
        if document.get("percentageOfNodesToScore") is not None:
            return int(document["percentageOfNodesToScore"])
    return 0


def _weights(written: Document, arguments: Mapping[str, Document]) -> tuple[tuple[str, int], ...]:
    """Merge enabled and disabled score plug-ins with the defaults, as the scheduler does.

    What is listed for score outweighs what is listed for all extension points.
    """
    plugins = written.get("plugins") or {}
    everywhere = _merged(plugins.get("multiPoint") or {}, dict(profile.WEIGHTS))
    score = plugins.get("score") or {}
    listed = _merged(score, {})
    disabled = _names(score, "disabled")
    chosen = {} if "*" in disabled else everywhere
    weights = {
        name: listed.get(name, weight)
        for name, weight in chosen.items()
        if name in listed or name not in disabled
    } | {name: weight for name, weight in listed.items() if name not in chosen}
    spread = arguments[profile.SPREAD]
    if spread.get("defaultingType") == "List" and not spread.get("defaultConstraints"):
        # Without constraints of its own a pod has none, and eligible pods have none of their own.
        weights.pop(profile.SPREAD, None)
    return tuple((name, weight) for name, weight in weights.items() if name in _SCORING)


def _merged(point: Document, defaults: Mapping[str, int]) -> dict[str, int]:
    disabled = _names(point, "disabled")
    kept = (
        {}
        if "*" in disabled
        else {name: weight for name, weight in defaults.items() if name not in disabled}
    )
    return kept | {
        one.get("name", ""): int(one.get("weight") or 1) for one in point.get("enabled") or ()
    }


def _names(point: Document, side: str) -> set[str]:
    return {one.get("name", "") for one in point.get(side) or ()}


def _resources(arguments: Document) -> tuple[str, ...]:
    written = arguments.get("resources")
    return tuple(one["name"] for one in written) if written else ("cpu", "memory")


def _fit(arguments: Document) -> node_resources.Fit | None:
    """Read the scoring strategy; None where the scheduler would not take it either."""
    strategy = arguments.get("scoringStrategy")
    if strategy is None:
        return profile.DEFAULT_FIT
    try:
        kind = node_resources.Strategy(strategy.get("type"))
    except ValueError:
        return None
    resources = strategy.get("resources")
    weights = (
        tuple((one["name"], int(one.get("weight") or 1)) for one in resources)
        if resources
        else profile.DEFAULT_FIT.weights
    )
    if kind is not node_resources.Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return node_resources.Fit(kind, weights)
    written = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
    shape = [(int(one["utilization"]), int(one.get("score") or 0)) for one in written]
    places = [utilization for utilization, _ in shape]
    if not shape or places != sorted(set(places)):
        return None
    return node_resources.Fit(kind, weights, node_resources.ramp(shape))
