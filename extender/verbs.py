"""The verbs of the wire as functions from bytes to bytes.

Names are live: answered from the watched state. Full nodes are a what-if: computed on an overlay
that is thrown away, and echoed untouched. Failures of ours are answers with an `Error`.
"""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import orjson

from api import core
from api import extender as wire
from extender import explain, framework, pipeline, records, state, switches

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
        refused = self._refused(self.cluster.view(), request, names, now, live=True)
        if not refused:
            # The usual case: give the very bytes of the list back.
            return b"".join((b'{"NodeNames":', bytes(question.node_names), _NOTHING_FAILED))
        failed, unresolvable = _maps(refused)
        return orjson.dumps(
            {
                "NodeNames": [name for name in names if name not in refused],
                "FailedNodes": failed,
                "FailedAndUnresolvableNodes": unresolvable,
                "Error": "",
            }
        )

    def _filter_nodes(self, question: _Question, request: framework.Request, now: float) -> bytes:
        nodes = _NODES.decode(question.nodes)
        overlay, names = self._overlay(nodes)
        refused = self._refused(overlay.view(), request, names, now, live=False)
        failed, unresolvable = _maps(refused)
        kept = tuple(
            raw for raw, name in zip(nodes.items, names, strict=True) if name not in refused
        )
        return _ENCODER.encode(
            wire.FilterResult(
                nodes=wire.RawNodes(kept, nodes.kind, nodes.api_version),
                failed_nodes=failed,
                failed_and_unresolvable_nodes=unresolvable,
            )
        )

    def _refused(
        self,
        view: framework.View,
        request: framework.Request,
        names: Sequence[str],
        now: float,
        *,
        live: bool,
    ) -> dict[str, pipeline.Refusal]:
        """Return the refused names with their reasons; empty in observe mode."""
        rows = view.rows
        refused: dict[str, pipeline.Refusal] = {}
        if self.switches.asks:
            outcome = self.plugins.filter(request, view, now)
            refusals = outcome.refusals
            if outcome.codes.any():
                codes = outcome.codes.tolist()
                for name in names:
                    row = rows.get(name)
                    if row is not None and codes[row]:
                        refused[name] = refusals[codes[row] - 1]
        unknown = {name: _UNKNOWN for name in names if name not in rows}
        if live and (refused or request.key in self.explanations):
            self._explain(view, request, len(names), refused, now)
        return (refused if self.switches.enforces else {}) | unknown

    def _explain(
        self,
        view: framework.View,
        request: framework.Request,
        asked: int,
        refused: Mapping[str, pipeline.Refusal],
        now: float,
    ) -> None:
        counts, sentences = explain.explain(self.plugins, request, view, refused, now)
        explanation = explain.Explanation(
            pod=request.key,
            uid=request.uid,
            at=now,
            mode=str(self.switches.mode),
            asked=asked,
            passed=asked - len(refused),
            reasons=counts,
            nodes=sentences,
        )
        by_plugin = collections.Counter(
            (refusal.plugin, refusal.reason.text) for refusal in refused.values()
        )
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
        known = [(name, row) for name in names if (row := view.rows.get(name)) is not None]
        if not known:
            return NO_SCORES
        scores = self.plugins.score(request, view, [row for _, row in known], now)
        scores -= scores.min()
        return orjson.dumps(
            [
                {"Host": name, "Score": score}
                for (name, _), score in zip(known, scores.tolist(), strict=True)
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


def _maps(refused: Mapping[str, pipeline.Refusal]) -> tuple[dict[str, str], dict[str, str]]:
    """Split refusals by whether the scheduler's own preemption could help."""

    def texts(entries: Iterable[tuple[str, pipeline.Refusal]]) -> dict[str, str]:
        return {name: refusal.reason.text for name, refusal in entries}

    items = list(refused.items())
    return (
        texts((name, found) for name, found in items if found.reason.resolvable),
        texts((name, found) for name, found in items if not found.reason.resolvable),
    )
