"""The verbs of the wire as functions from bytes to bytes.

Names are live: answered from the watched state. Full nodes are a what-if: computed on an overlay
that is thrown away, and echoed untouched. Failures of ours are answers with an `Error`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
import orjson

from api.kubernetes import extender as wire
from extender.explain import explanations
from extender.framework import pipeline, verdicts, views
from extender.requeue import unschedulable_pods
from extender.state import cluster_state, records
from extender.verbs import request_codec
from process.configuration import switches

_SAMPLES = 5
NO_SCORES = request_codec.NO_SCORES
UNKNOWN = verdicts.Status("node is not known to the extender")
_UNKNOWN = pipeline.Refusal("view", UNKNOWN)
_BAD_INPUT = (msgspec.MsgspecError, RecursionError, ValueError)


_NODES = msgspec.json.Decoder(wire.RawNodes)
_PREEMPTION = msgspec.json.Decoder(wire.PreemptionArgs)
_ENCODER = msgspec.json.Encoder()


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """What one filter call refused, for counting, logging and events."""

    request: views.PodInfo
    explanation: explanations.Explanation
    by_plugin: Mapping[tuple[str, str], int]
    is_new: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Judgement:
    """The names of one call, each with 0 or 1 + the index of its refusal."""

    candidates: request_codec.Candidates
    codes: verdicts.Codes
    refusals: tuple[pipeline.Refusal, ...]

    @property
    def names(self) -> Sequence[str]:
        return self.candidates.names

    def kept(self) -> request_codec.Candidates:
        """Return who passed."""
        passed = self.codes == 0
        names = list(itertools.compress(self.names, passed.tolist()))
        return request_codec.Candidates(names, self.candidates.rows[passed])

    def failed(self, *, resolvable: bool) -> dict[str, str]:
        """Return the refused names whose reason is of one sort, with its text."""
        wanted = [False, *(found.status.resolvable is resolvable for found in self.refusals)]
        texts = ["", *(found.status.reason for found in self.refusals)]
        mask = np.asarray(wanted)[self.codes]
        return dict(
            zip(
                itertools.compress(self.names, mask.tolist()),
                map(texts.__getitem__, self.codes[mask].tolist()),
                strict=True,
            )
        )

    def samples(self) -> list[int]:
        """Return the places of some refused names: every reason once, then more of the first."""
        refused = np.flatnonzero(self.codes)
        if not refused.size:
            return []
        first = (int(np.argmax(self.codes == code + 1)) for code in range(len(self.refusals)))
        reasons = (at for code, at in enumerate(first) if self.codes[at] == code + 1)
        chosen = dict.fromkeys([*reasons, *refused[:_SAMPLES].tolist()])
        return list(itertools.islice(chosen, _SAMPLES))


@dataclasses.dataclass(frozen=True, slots=True)
class Verbs:
    """Answers questions from the present picture."""

    cluster: cluster_state.ClusterState
    plugins: pipeline.Pipeline
    projector: records.Projector
    switches: switches.Switches
    explanations: explanations.Explanations
    tell: Callable[[Refused], None]
    reader: request_codec.Reader
    writer: request_codec.Scores = dataclasses.field(default_factory=request_codec.Scores)
    waits: unschedulable_pods.UnschedulablePods = dataclasses.field(
        default_factory=unschedulable_pods.UnschedulablePods
    )

    # -- filter ----------------------------------------------------------------------------

    def filter(self, body: bytes, now: float) -> bytes:
        """Answer a filter call."""
        try:
            question = self.reader.read(body)
            if question.nodes is not None:
                return self._filter_nodes(question.nodes, question.request, now)
            view = self.cluster.view()
            candidates = self.reader.candidates(question.text, view)
        except _BAD_INPUT as error:
            return failure(f"filter: the request cannot be read: {error}")
        self.waits.tried(question.request.key, now)
        judged = self._judge(view, question.request, candidates, now, live=True)
        if not np.count_nonzero(judged.codes):
            # The usual case: give the very bytes of the list back.
            return b"".join((b'{"NodeNames":', question.text, _NOTHING_FAILED))
        kept = judged.kept()
        text = orjson.dumps(kept.names)
        self.reader.expect(text, view, kept)
        parts = (
            b'{"NodeNames":', text,
            b',"FailedNodes":', orjson.dumps(judged.failed(resolvable=True)),
            b',"FailedAndUnresolvableNodes":', orjson.dumps(judged.failed(resolvable=False)),
            b',"Error":""}',
        )  # fmt: skip
        return b"".join(parts)

    def _filter_nodes(self, written: bytes, request: views.PodInfo, now: float) -> bytes:
        nodes = _NODES.decode(written)
        view, candidates = self._overlay(nodes)
        judged = self._judge(view, request, candidates, now, live=False)
        kept = tuple(itertools.compress(nodes.items, (judged.codes == 0).tolist()))
        return _ENCODER.encode(
            wire.FilterResult(
                nodes=wire.RawNodes(kept, nodes.kind, nodes.api_version),
                failed_nodes=judged.failed(resolvable=True),
                failed_and_unresolvable_nodes=judged.failed(resolvable=False),
            )
        )

    def _judge(
        self,
        view: views.View,
        request: views.PodInfo,
        candidates: request_codec.Candidates,
        now: float,
        *,
        live: bool,
    ) -> _Judgement:
        """Judge the names of one call; in observe mode only unknown names are refused."""
        rows = candidates.rows
        refusals: tuple[pipeline.Refusal, ...] = ()
        codes = np.zeros(rows.size, dtype=np.int16)
        if self.switches.asks:
            outcome = self.plugins.filter(request, view, now)
            refusals = outcome.refusals
            if refusals and rows.size:
                codes = outcome.codes[rows]
        unknown = rows < 0
        codes[unknown] = 0
        if live and (np.count_nonzero(codes) or request.key in self.explanations):
            self._explain(view, request, _Judgement(candidates, codes, refusals), now)
        if not self.switches.enforces:
            codes[:] = 0
        codes[unknown] = len(refusals) + 1
        return _Judgement(candidates, codes, (*refusals, _UNKNOWN))

    def _explain(
        self, view: views.View, request: views.PodInfo, judged: _Judgement, now: float
    ) -> None:
        counts = np.bincount(judged.codes, minlength=len(judged.refusals) + 1).tolist()
        by_refusal = {
            refusal: count
            for refusal, count in zip(judged.refusals, counts[1:], strict=True)
            if count
        }
        explanation = explanations.Explanation(
            pod=request.key,
            uid=request.uid,
            at=now,
            mode=str(self.switches.mode),
            asked=len(judged.names),
            passed=counts[0],
            reasons={refusal.status.reason: count for refusal, count in by_refusal.items()},
            spelled=self._spelled(view, request, judged, now),
        )
        by_plugin = {(found.plugin, found.status.reason): n for found, n in by_refusal.items()}
        is_new = self.explanations.put(explanation)
        if explanation.passed or not self.switches.enforces:
            self.waits.settled(request.key)
        elif by_refusal:
            self.waits.refused(
                request, unschedulable_pods.attempt_on(view, judged.candidates.rows), now
            )
        self.tell(Refused(request, explanation, by_plugin, is_new))

    def _spelled(
        self, view: views.View, request: views.PodInfo, judged: _Judgement, now: float
    ) -> Callable[[], dict[str, str]]:
        """Keep what some refusals were based on, to be put into words when somebody asks."""
        places = judged.samples()
        kept = view.several(judged.candidates.rows[places].tolist())
        refusals = [judged.refusals[code - 1] for code in judged.codes[places].tolist()]
        return lambda: {
            name: self.plugins.sentence(request, kept, row, refusal, now)
            for row, (name, refusal) in enumerate(zip(kept.names, refusals, strict=True))
        }

    # -- prioritize ------------------------------------------------------------------------

    def prioritize(self, body: bytes, now: float) -> bytes:
        """Answer a prioritize call; zero scores are left out, a failure scores nothing."""
        if not self.switches.enforces:
            return NO_SCORES
        try:
            question = self.reader.read(body)
            if question.nodes is not None:
                view, candidates = self._overlay(_NODES.decode(question.nodes))
            else:
                view = self.cluster.view()
                candidates = self.reader.candidates(question.text, view)
        except _BAD_INPUT:
            return NO_SCORES
        names, rows = candidates.names, candidates.rows
        known = rows >= 0
        if np.count_nonzero(known) < known.size:
            names, rows = list(itertools.compress(names, known.tolist())), rows[known]
        if not rows.size:
            return NO_SCORES
        scores = self.plugins.score(question.request, view, rows, now)
        return self.writer.write(names, scores - scores.min())

    # -- preempt ---------------------------------------------------------------------------

    def preempt(self, body: bytes, now: float) -> bytes:
        """Answer as proposed: nothing that we keep account of is protected from preemption yet."""
        try:
            asked = _PREEMPTION.decode(body)
        except _BAD_INPUT as error:
            return failure(f"preempt: the request cannot be read: {error}")
        proposed = dict(asked.node_name_to_meta_victims or {})
        for node, victims in (asked.node_name_to_victims or {}).items():
            pods = tuple(wire.MetaPod(pod.metadata.uid) for pod in victims.pods or ())
            proposed[node] = wire.MetaVictims(pods, victims.violations)
        proposed = {node: found for node, found in proposed.items() if found.pods}
        leaving = {
            node: frozenset(pod.uid for pod in found.pods or ()) for node, found in proposed.items()
        }
        if leaving:
            preemptor = unschedulable_pods.Preemptor(asked.pod.metadata.uid, leaving, now)
            self.waits.preempts(asked.pod.metadata.key, preemptor)
        return _ENCODER.encode(wire.PreemptionResult(proposed))

    # -- shared ----------------------------------------------------------------------------

    def _overlay(self, nodes: wire.RawNodes) -> tuple[views.View, request_codec.Candidates]:
        found = [self.projector.node(node) for node in nodes.decoded()]
        unique = {record.name: record for record in found}
        view = self.cluster.what_if(unique.values()).view()
        names = [record.name for record in found]
        return view, request_codec.Candidates(names, request_codec.look_up(names, view.rows))


_NOTHING_FAILED = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def failure(text: str) -> bytes:
    """Return the answer of filter, preempt or bind for a failure of ours."""
    return orjson.dumps({"Error": text})
