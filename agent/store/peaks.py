"""What pods are going to need at most, learned from what they used; and what that leaves. Pure.

One model per pod, one per priority band and one each for the node and for what belongs to no pod.
A model is two forgetting histograms. What production pods request beyond their predicted peak, a
safety margin included, may be lent to others: two predictions are made, pod by pod and for the
band as a whole, and the lower one counts.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import durations, quantity, untrusted
from domain.pods import resources
from domain.usage import histogram

NODE: Final = "__node__"
SYSTEM: Final = "__node-sys__"
SHARES: Final[Mapping[str, float]] = {"p60": 0.6, "p90": 0.9, "p95": 0.95, "p98": 0.98, "max": 1.0}
_CORES: Final = histogram.Exponential(1024.0, 0.025, 1.05)
_BYTES: Final = histogram.Exponential(2.0**41, 5.0 * 2**20, 1.05)
_EMPTY_BELOW: Final = 0.0001
_LENDING: Final = frozenset({qos.Band.PROD, qos.Band.NONE})
MOST_MODELS: Final = 2048
"""Models of pods beyond this many are not made: about 3 KiB each."""


def band_model(band: qos.Band) -> str:
    """Return the name of the model of all pods of a band."""
    return f"__node-{band.value}__"


SHARED: Final = frozenset({NODE, SYSTEM, *(band_model(band) for band in qos.Band)})
"""The models that belong to no single pod."""


class Rules(msgspec.Struct, frozen=True):
    """How peaks are learned and used."""

    safety_margin_percent: float = 10.0
    cold_start_seconds: float = 86_400.0
    """Pods younger than this lend nothing."""
    cpu_half_life: float = 43_200.0
    memory_half_life: float = 86_400.0
    expiry_seconds: float = 1800.0
    """A model that was not trained for so long is dropped."""

    @property
    def factor(self) -> float:
        """What a peak is multiplied with to be safe."""
        return (100.0 + self.safety_margin_percent) / 100.0


class Sample(NamedTuple):
    """A use of cpu in cores and of memory in bytes."""

    cpu: float
    memory: float

    def plus(self, other: "Sample") -> "Sample":
        """Add another use."""
        return Sample(self.cpu + other.cpu, self.memory + other.memory)

    def beyond(self, other: "Sample") -> "Sample":
        """Return what this exceeds another use by, nothing where it does not."""
        return Sample(max(0.0, self.cpu - other.cpu), max(0.0, self.memory - other.memory))

    @property
    def sound(self) -> bool:
        """Whether it is a use at all."""
        return math.isfinite(self.cpu) and math.isfinite(self.memory)


class Amount(NamedTuple):
    """Cpu in milli and memory in bytes, whole."""

    cpu: int
    memory: int

    def plus(self, other: "Amount") -> "Amount":
        """Add another amount."""
        return Amount(self.cpu + other.cpu, self.memory + other.memory)

    def beyond(self, other: "Amount") -> "Amount":
        """Return what this exceeds another amount by, nothing where it does not."""
        return Amount(max(0, self.cpu - other.cpu), max(0, self.memory - other.memory))

    def least(self, other: "Amount") -> "Amount":
        """Return the smaller of two amounts, each resource by itself."""
        return Amount(min(self.cpu, other.cpu), min(self.memory, other.memory))

    def most(self, other: "Amount") -> "Amount":
        """Return the larger of two amounts, each resource by itself."""
        return Amount(max(self.cpu, other.cpu), max(self.memory, other.memory))

    def times(self, factor: float) -> "Amount":
        """Multiply, leaving out fractions."""
        return Amount(int(self.cpu * factor), int(self.memory * factor))


NOTHING: Final = Amount(0, 0)


class Round(msgspec.Struct, frozen=True):
    """What was used during one interval; pods without figures are missing."""

    at: float
    pods: Mapping[str, tuple[Sample, qos.Band]]
    node: Sample | None = None


class Lender(msgspec.Struct, frozen=True):
    """A pod that may request more than it is going to need."""

    uid: str
    band: qos.Band
    request: Amount
    age_seconds: float
    ending: bool = False
    finished: bool = False


class Forecast(msgspec.Struct, frozen=True):
    """What production leaves unused and needs at most; None where that cannot be told, and why."""

    reclaimable: Amount | None
    peak: Amount | None
    problem: str = ""


class Model:
    """What is known of one pod, or of many together."""

    __slots__ = ("cpu", "memory", "updated_at")

    def __init__(self, rules: Rules, at: float = 0.0) -> None:
        self.cpu = histogram.Histogram(_CORES, _EMPTY_BELOW, rules.cpu_half_life)
        self.memory = histogram.Histogram(_BYTES, _EMPTY_BELOW, rules.memory_half_life)
        self.updated_at = at

    def learn(self, sample: Sample, at: float) -> None:
        """Take in what was used."""
        if at < self.updated_at - 0.5 * (self.cpu.half_life or 0.0):
            # The clock was set back: what is known is taken for as old as it was a moment ago.
            self.cpu.moved(at - self.updated_at)
            self.memory.moved(at - self.updated_at)
        self.cpu.add(sample.cpu, 1.0, at)
        self.memory.add(sample.memory, 1.0, at)
        self.updated_at = at

    def peaks(self) -> dict[str, Amount]:
        """Return the use that is exceeded less and less often."""
        cores = self.cpu.percentiles(SHARES.values())
        sizes = self.memory.percentiles(SHARES.values())
        found = zip(SHARES, cores, sizes, strict=True)
        return {name: Amount(int(cpu * 1000), int(memory)) for name, cpu, memory in found}

    def peak(self) -> Amount:
        """Return the use that counts as the peak."""
        cores = self.cpu.percentile(SHARES["p95"])
        return Amount(int(cores * 1000), int(self.memory.percentile(SHARES["p98"])))

    def written(self, uid: str) -> dict[str, Any]:
        """Return it as a checkpoint holds it."""
        return {
            "UID": uid,
            "CPU": self.cpu.checkpoint().written(),
            "Memory": self.memory.checkpoint().written(),
            "LastUpdated": durations.moment(self.updated_at),
        }


def read(uid: str, body: Any, rules: Rules) -> Model:
    """Read what a checkpoint holds; raises HistogramError where it makes no sense."""
    if not isinstance(body, Mapping) or body.get("UID") != uid:
        raise histogram.HistogramError(f"no checkpoint of {uid}")
    try:
        model = Model(rules, durations.timestamp(body["LastUpdated"]))
    except (KeyError, TypeError, ValueError) as error:
        raise histogram.HistogramError(f"LastUpdated: {type(error).__name__}: {error}") from error
    model.cpu.restore(histogram.read(body.get("CPU")))
    model.memory.restore(histogram.read(body.get("Memory")))
    return model


class Models:
    """Everything that was learned on this node."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._models: dict[str, Model] = {}

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, uid: object) -> bool:
        return uid in self._models

    def get(self, uid: str) -> Model | None:
        """Return one model, None for what was never trained."""
        return self._models.get(uid)

    def items(self) -> Iterable[tuple[str, Model]]:
        """Iterate over the models by name."""
        return self._models.items()

    def put(self, uid: str, model: Model) -> None:
        """Take in a model that was kept elsewhere."""
        self._models[uid] = model

    def train(self, round_: Round) -> None:
        """Learn from one interval."""
        everything = Sample(0.0, 0.0)
        sums = dict.fromkeys(qos.Band, everything)
        for uid, (sample, band) in round_.pods.items():
            if not sample.sound:
                continue
            self._learn(uid, sample, round_.at)
            sums[band] = sums[band].plus(sample)
            everything = everything.plus(sample)
        node = round_.node if round_.node is not None and round_.node.sound else None
        if node is not None:
            self._learn(NODE, node, round_.at)
        for band, total in sums.items():
            self._learn(band_model(band), total, round_.at)
        self._learn(SYSTEM, (node or Sample(0.0, 0.0)).beyond(everything), round_.at)

    def expired(self, now: float) -> list[str]:
        """Drop the models of what is long gone; return their names."""
        longest = self.rules.expiry_seconds
        gone = [u for u, model in self._models.items() if abs(now - model.updated_at) > longest]
        for uid in gone:
            del self._models[uid]
        return gone

    def _learn(self, uid: str, sample: Sample, at: float) -> None:
        model = self._models.get(uid)
        if model is None:
            if len(self._models) >= MOST_MODELS and uid not in SHARED:
                return
            model = self._models[uid] = Model(self.rules, at)
        model.learn(sample, at)


def unknown(models: Models, pod: Lender) -> bool:
    """Whether nothing can be said of a pod that ought to be known: it is left out of all sums."""
    if pod.band not in _LENDING or pod.ending or pod.finished:
        return False
    return pod.age_seconds > models.rules.cold_start_seconds and pod.uid not in models


def forecast(models: Models, allocatable: Amount | None, pods: Iterable[Lender]) -> Forecast:
    """Return what production pods are going to leave and to need, on a node that offers so much."""
    lenders = [pod for pod in pods if pod.band in _LENDING]
    peak, unused, unpredicted = _by_pod(models, lenders)
    known = [models.get(uid) for uid in (SYSTEM, *map(band_model, sorted(_LENDING)))]
    total = NOTHING
    for model in known:
        if model is None:
            return Forecast(None, None, "not trained yet")
        total = total.plus(model.peak())
    band = total.times(models.rules.factor)
    needed = peak.plus(unpredicted).most(band)
    if allocatable is None:
        return Forecast(None, needed, "it is unknown what the node offers")
    asked = NOTHING
    for pod in lenders:
        if not (pod.ending or pod.finished or unknown(models, pod)):
            asked = asked.plus(pod.request)
    by_pod = allocatable.beyond(peak).least(unused)
    by_band = allocatable.beyond(band).least(asked.beyond(band))
    return Forecast(by_pod.least(by_band), needed)


def _by_pod(models: Models, lenders: Iterable[Lender]) -> tuple[Amount, Amount, Amount]:
    """Add up peaks, what is requested beyond them, and requests of what cannot be predicted."""
    peaks, unused, unpredicted = NOTHING, NOTHING, NOTHING
    for pod in lenders:
        young = pod.age_seconds <= models.rules.cold_start_seconds
        model = models.get(pod.uid)
        if young or unknown(models, pod):
            unpredicted = unpredicted.plus(pod.request)
        elif model is not None and not (pod.ending or pod.finished):
            peak = model.peak().times(models.rules.factor)
            peaks = peaks.plus(peak)
            unused = unused.plus(pod.request.beyond(peak))
    return peaks, unused, unpredicted


def lender(pod: core.Pod, now: float) -> Lender:
    """Look at a pod as one that may lend."""
    requests = resources.pod_requests(pod)
    return Lender(
        uid=pod.metadata.uid,
        band=qos.band_of_pod(pod),
        request=Amount(requests.get(names.CPU, 0), requests.get(names.MEMORY, 0)),
        age_seconds=_age(pod, now),
        ending=pod.metadata.deletion_timestamp is not None,
        finished=pod.finished,
    )


def _age(pod: core.Pod, now: float) -> float:
    """Return how old a pod is; one that does not say so readably counts as new."""
    try:
        return now - durations.timestamp(pod.metadata.creation_timestamp or "")
    except durations.TimestampError:
        return 0.0


def offered(node: core.Node | None) -> Amount | None:
    """Return what a node offers, before anything was amplified; None while it does not say."""
    if node is None:
        return None
    written = _raw_allocatable(node) or node.status.allocatable
    try:
        return Amount(
            quantity.milli(written.get(names.CPU, 0)), quantity.whole(written.get(names.MEMORY, 0))
        )
    except quantity.QuantityError:
        return None


def _raw_allocatable(node: core.Node) -> core.ResourceList:
    """Return what a node offered before amplification, nothing where nothing readable says so."""
    written = node.metadata.annotations.get(names.ANNOTATION_RAW_ALLOCATABLE)
    try:
        what = f"annotation {names.ANNOTATION_RAW_ALLOCATABLE}"
        found = untrusted.decode(written or "{}", core.ResourceList, what)
        resources.amounts(found)
    except ValueError:
        return {}
    return found
