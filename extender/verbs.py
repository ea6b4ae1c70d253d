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

from api import core
from api import extender as wire
from extender import explain, framework, pipeline, records, state, switches

_SAMPLES = 5
NO_SCORES = b"[]"
UNKNOWN = framework.Reason("node is not known to the extender")
_UNKNOWN = pipeline.Refusal("view", UNKNOWN)
_BAD_INPUT = (msgspec.MsgspecError, RecursionError, ValueError)


class _Question(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """A filter or prioritize call whose candidates stay undecoded."""

    pod: core.Pod
    nodes: msgspec.Raw = msgspec.Raw(b"null")
    node_names: msgspec.Raw = msgspec.Raw(b"null")


_QUESTION = msgspec.json.Decoder(_Question)
_NAMES = msgspec.json.Decoder(list[str])
_NODES = msgspec.json.Decoder(wire.RawNodes)
_PREEMPTION = msgspec.json.Decoder(wire.PreemptionArgs)
_ENCODER = msgspec.json.Encoder()


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """What one filter call refused, for counting, logging and events."""

    request: framework.Request
    explanation: explain.Explanation
    by_plugin: Mapping[tuple[str, str], int]
    is_new: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Judgement:
    """The names of one call, each with 0 or 1 + the index of its refusal."""

    names: Sequence[str]
    codes: framework.Codes
    refusals: tuple[pipeline.Refusal, ...]

    def failed(self, *, resolvable: bool) -> dict[str, str]:
        """Return the refused names whose reason is of one sort, with its text."""
        wanted = [False, *(found.reason.resolvable is resolvable for found in self.refusals)]
        texts = ["", *(found.reason.text for found in self.refusals)]
        mask = np.asarray(wanted)[self.codes]
        return dict(
            zip(
                itertools.compress(self.names, mask.tolist()),
                map(texts.__getitem__, self.codes[mask].tolist()),
                strict=True,
            )
        )

    def samples(self) -> list[tuple[str, pipeline.Refusal]]:
        """Return some refused names: every reason once, then more of the first ones."""
        refused = np.flatnonzero(self.codes)
        _, first = np.unique(self.codes[refused], return_index=True)
        chosen = dict.fromkeys([*refused[first].tolist(), *refused[:_SAMPLES].tolist()])
        return [
            (self.names[at], self.refusals[int(self.codes[at]) - 1])
            for at in itertools.islice(chosen, _SAMPLES)
        ]


@dataclasses.dataclass(frozen=True, slots=True)
class Verbs:
    """Answers questions from the present picture."""

    cluster: state.ClusterState
    plugins: pipeline.Pipeline
    projector: records.Projector
    switches: switches.Switches
    explanations: explain.Explanations
    tell: Callable[[Refused], None]

    # -- filter ----------------------------------------------------------------------------

    def filter(self, body: bytes, now: float) -> bytes:
        """Answer a filter call."""
        try:
            question = _QUESTION.decode(body)
            request = self._request(question.pod)
            if bytes(question.nodes) != b"null":
                return self._filter_nodes(question, request, now)
            names = _names(question)
        except _BAD_INPUT as error:
            return failure(f"filter: the request cannot be read: {error}")
        judged = self._judge(self.cluster.view(), request, names, now, live=True)
        if not judged.codes.any():
            # The usual case: give the very bytes of the list back.
            return b"".join((b'{"NodeNames":', bytes(question.node_names), _NOTHING_FAILED))
        return orjson.dumps(
            {
                "NodeNames": list(itertools.compress(names, (judged.codes == 0).tolist())),
                "FailedNodes": judged.failed(resolvable=True),
                "FailedAndUnresolvableNodes": judged.failed(resolvable=False),
                "Error": "",
            }
        )

    def _filter_nodes(self, question: _Question, request: framework.Request, now: float) -> bytes:
        nodes = _NODES.decode(question.nodes)
        overlay, names = self._overlay(nodes)
        judged = self._judge(overlay.view(), request, names, now, live=False)
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
        view: framework.View,
        request: framework.Request,
        names: Sequence[str],
        now: float,
        *,
        live: bool,
    ) -> _Judgement:
        """Judge the names of one call; in observe mode only unknown names are refused."""
        found = list(map(view.rows.get, names))
        rows = np.fromiter((-1 if r is None else r for r in found), np.intp, len(found))
        refusals: tuple[pipeline.Refusal, ...] = ()
        codes = np.zeros(rows.size, dtype=np.int16)
        if self.switches.asks:
            outcome = self.plugins.filter(request, view, now)
            refusals = outcome.refusals
            if refusals and rows.size:
                codes = outcome.codes[rows]
        unknown = rows < 0
        codes[unknown] = 0
        if live and (codes.any() or request.key in self.explanations):
            self._explain(view, request, _Judgement(names, codes, refusals), now)
        if not self.switches.enforces:
            codes[:] = 0
        codes[unknown] = len(refusals) + 1
        return _Judgement(names, codes, (*refusals, _UNKNOWN))

    def _explain(
        self, view: framework.View, request: framework.Request, judged: _Judgement, now: float
    ) -> None:
        counts = np.bincount(judged.codes, minlength=len(judged.refusals) + 1).tolist()
        by_refusal = {
            refusal: count
            for refusal, count in zip(judged.refusals, counts[1:], strict=True)
            if count
        }
        explanation = explain.Explanation(
            pod=request.key,
            uid=request.uid,
            at=now,
            mode=str(self.switches.mode),
            asked=len(judged.names),
            passed=counts[0],
            reasons={refusal.reason.text: count for refusal, count in by_refusal.items()},
            nodes={
                name: self.plugins.sentence(request, view, view.rows[name], refusal, now)
                for name, refusal in judged.samples()
            },
        )
        by_plugin = {(found.plugin, found.reason.text): n for found, n in by_refusal.items()}
        is_new = self.explanations.put(explanation)
        self.tell(Refused(request, explanation, by_plugin, is_new))

    # -- prioritize ------------------------------------------------------------------------

    def prioritize(self, body: bytes, now: float) -> bytes:
        """Answer a prioritize call; zero scores are left out, a failure scores nothing."""
        try:
            question = _QUESTION.decode(body)
            request = self._request(question.pod)
            if bytes(question.nodes) != b"null":
                overlay, names = self._overlay(_NODES.decode(question.nodes))
                view = overlay.view()
            else:
                names, view = _names(question), self.cluster.view()
        except _BAD_INPUT:
            return NO_SCORES
        if not self.switches.enforces:
            return NO_SCORES
        known = [name for name in names if name in view.rows]
        if not known:
            return NO_SCORES
        rows = list(map(view.rows.__getitem__, known))
        scores = self.plugins.score(request, view, rows, now)
        scores -= scores.min()
        return orjson.dumps(
            [
                {"Host": name, "Score": score}
                for name, score in zip(known, scores.tolist(), strict=True)
                if score
            ]
        )

    # -- preempt ---------------------------------------------------------------------------

    def preempt(self, body: bytes, now: float) -> bytes:
        """Answer as proposed: nothing that we keep account of is protected from preemption yet."""
        del now
        try:
            asked = _PREEMPTION.decode(body)
        except _BAD_INPUT as error:
            return failure(f"preempt: the request cannot be read: {error}")
        proposed = dict(asked.node_name_to_meta_victims or {})
        for node, victims in (asked.node_name_to_victims or {}).items():
            pods = tuple(wire.MetaPod(pod.metadata.uid) for pod in victims.pods or ())
            proposed[node] = wire.MetaVictims(pods, victims.violations)
        return _ENCODER.encode(
            wire.PreemptionResult({node: found for node, found in proposed.items() if found.pods})
        )

    # -- shared ----------------------------------------------------------------------------

    def _request(self, pod: core.Pod) -> framework.Request:
        return framework.Request(pod.metadata.key, pod.metadata.uid, self.projector.demand(pod))

    def _overlay(self, nodes: wire.RawNodes) -> tuple[state.ClusterState, list[str]]:
        found = [self.projector.node(node) for node in nodes.decoded()]
        unique = {record.name: record for record in found}
        return self.cluster.what_if(unique.values()), [record.name for record in found]


_NOTHING_FAILED = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def failure(text: str) -> bytes:
    """Return the answer of filter, preempt or bind for a failure of ours."""
    return orjson.dumps({"Error": text})


def _names(question: _Question) -> list[str]:
    if bytes(question.node_names) == b"null":
        return []
    return _NAMES.decode(question.node_names)
