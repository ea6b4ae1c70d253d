"""The filter verb: the nodes that may take a pod, or the one that the scheduler would choose.

kube-scheduler uses the only node that a filter leaves without scoring it, and reads why others were
refused only where none is left.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec
import numpy as np
import orjson

from api.kubernetes import extender as wire
from extender.explain import explanations
from extender.framework import pipeline, verdicts, views
from extender.framework.nodes import numa
from extender.preemption import in_flight, nominated_place
from extender.requeue import unschedulable_pods
from extender.scoring import decider
from extender.verbs import parts, prioritize, request_codec, response

_SAMPLES = 5
_Key = TypeVar("_Key")
UNKNOWN = verdicts.Status("node is not known to the extender")
_UNKNOWN = pipeline.Refusal("view", UNKNOWN)
PASSED_OVER = verdicts.Status("a Reservation for the pod is on a node that was not looked at")
_PASSED_OVER = pipeline.Refusal("sample", PASSED_OVER)


class _Judgement(msgspec.Struct, frozen=True, gc=False):
    """The names of one call, each with 0 or 1 + the index of its refusal."""

    candidates: request_codec.Candidates
    codes: verdicts.Codes
    refusals: tuple[pipeline.Refusal, ...]

    @property
    def names(self) -> Sequence[str]:
        return self.candidates.names

    @property
    def unanimous(self) -> bool:
        """Whether every name passed."""
        return not np.count_nonzero(self.codes)

    def known(self) -> tuple[verdicts.Rows, Iterable[str]]:
        """Return the rows of known nodes, and the names of others."""
        rows = self.candidates.rows
        is_known = rows >= 0
        if is_known.all():
            return rows, ()
        return rows[is_known], itertools.compress(self.names, (~is_known).tolist())

    def kept(self) -> request_codec.Candidates:
        """Return who passed."""
        if self.unanimous:
            return self.candidates
        passed = self.codes == 0
        names = list(itertools.compress(self.names, passed.tolist()))
        return request_codec.Candidates(names, self.candidates.rows[passed])

    def failed(self, *, resolvable: bool) -> dict[str, str]:
        """Return the refused names whose reason is of one sort, with its text."""
        wanted = [False, *(found.status.resolvable is resolvable for found in self.refusals)]
        texts = ["", *(found.status.text for found in self.refusals)]
        mask = np.asarray(wanted)[self.codes]
        return dict(
            zip(
                itertools.compress(self.names, mask.tolist()),
                map(texts.__getitem__, self.codes[mask].tolist()),
                strict=True,
            )
        )

    def samples(self, counts: Sequence[int]) -> list[int]:
        """Return the places of some refused names: every reason once, then more of the first.

        `counts` are how many names have each code.
        """
        present = [code for code, count in enumerate(counts) if code and count]
        if not present:
            return []
        reasons = [int((self.codes == code).argmax()) for code in present]
        refused = self.codes.nonzero()[0]
        # One of the nodes with the same message is enough.
        alike = [code for code in present if self.refusals[code - 1].status.message]
        if alike:
            refused = refused[~np.isin(self.codes[refused], alike)]
        chosen = dict.fromkeys([*reasons, *refused[:_SAMPLES].tolist()])
        return list(itertools.islice(chosen, _SAMPLES))


def answer(on: parts.Parts, body: bytes, now: float) -> bytes:
    """Answer a filter call."""
    try:
        question = on.reader.read(body)
        if question.nodes is not None:
            return _answer_nodes(on, question.nodes, question.request, now)
        view = on.cluster.view()
        candidates = on.reader.candidates(question.text, view)
        if question.request.requirements.is_member:
            volumes = _claims_volumes(question)
            planned = on.offers.take(question.request.uid, candidates.names, volumes)
            view = on.cluster.view()
            if planned and _is_planned(on, question, view, (candidates, planned), now):
                return _one_name(planned)
        asked = on.cycles.get(on.plugins, question.request, view)
    except parts.BAD_INPUT as error:
        return response.failure(f"filter: the request cannot be read: {error}")
    on.waits.tried(question.request.key, now)
    judged = _judge(on, view, (asked, candidates), now, live=True)
    kept = judged.kept()
    only = _kept_place(on, question, kept) or _only(on, question, view, (asked, judged, kept), now)
    if only is not None:
        return _one_name(only)
    if judged.unanimous:
        # Give the very bytes of the list back.
        return b"".join((b'{"NodeNames":', question.text, response.NOTHING_FAILED))
    text = orjson.dumps(kept.names)
    if kept.names:
        on.reader.expect(text, view, kept)
        return b"".join((b'{"NodeNames":', text, response.NOTHING_FAILED))
    if nominated := question.pod.status.nominated_node_name:
        on.waits.nominated(question.request.key, nominated)
    failed, unresolvable = judged.failed(resolvable=True), judged.failed(resolvable=False)
    awaited = on.preemptions.awaited(question.request.uid) or nominated
    if awaited in unresolvable and _is_awaited(on, question, view, awaited, now):
        # Else kube-scheduler would look for other victims while ours, or its own, are leaving.
        del unresolvable[awaited]
        failed[awaited] = in_flight.AWAITED.reason
    pieces = (
        b'{"NodeNames":', text,
        b',"FailedNodes":', orjson.dumps(failed),
        b',"FailedAndUnresolvableNodes":', orjson.dumps(unresolvable),
        b',"Error":""}',
    )  # fmt: skip
    return b"".join(pieces)


def _is_awaited(
    on: parts.Parts, question: request_codec.Question, view: views.View, node: str, now: float
) -> bool:
    """Whether a node is kept for a pod while others leave it for its sake."""
    request, row = question.request, view.rows.get(node)
    if on.preemptions.awaited(request.uid) == node:
        return True
    return row is not None and nominated_place.is_awaited(on.plugins, request, view, row, now)


def _one_name(name: str) -> bytes:
    return b"".join((b'{"NodeNames":', orjson.dumps([name]), response.NOTHING_FAILED))


def _is_planned(
    on: parts.Parts,
    question: request_codec.Question,
    view: views.View,
    offered: tuple[request_codec.Candidates, str],
    now: float,
) -> bool:
    """Whether the planned node of a member is offered and passes: no other has to be looked at.

    Otherwise all are judged, and it is explained what refuses them.
    """
    candidates, name = offered
    key, row = question.request.key, view.rows.get(name)
    if row is None or not on.switches.enforces or key in on.explanations:
        return False
    if not np.count_nonzero(candidates.rows == row):
        return False
    asked, rows = on.cycles.get(on.plugins, question.request, view), pipeline.alone(row)
    found = on.plugins.filter(asked, view, rows, now)
    if found.refusal(0) is not None:
        return False
    if _is_passed_over(on, view, asked, (rows, found.codes), now):
        return False
    on.waits.tried(key, now)
    on.waits.settled(key)
    if on.decider is not None and question.traits is not None:
        case = decider.Asked(question.pod, question.traits, view, rows)
        on.decider.sent(case, name)
    return True


def _claims_volumes(question: request_codec.Question) -> bool:
    """Whether a pod has volumes of claims, which may be reached from some nodes only."""
    return any(
        one.persistent_volume_claim is not None or one.ephemeral is not None
        for one in question.pod.spec.volumes
    )


def _kept_place(
    on: parts.Parts, question: request_codec.Question, kept: request_codec.Candidates
) -> str | None:
    """Return the node that was kept for a pod that has preempted, where it passes.

    As kube-scheduler tries a nominated node first. What it takes there may be allocated to it
    already, such as a Reservation, so that no score would tell it from other nodes.
    """
    found = on.preemptions.get(question.request.uid)
    if found is None or not on.switches.enforces:
        return None
    return found.record.node if found.record.node in kept.names else None


def _only(
    on: parts.Parts,
    question: request_codec.Question,
    view: views.View,
    judged: tuple[pipeline.Cycle, _Judgement, request_codec.Candidates],
    now: float,
) -> str | None:
    """Return the one name to answer, None for the whole list.

    A call with one name is about a nominated node: there is nothing to choose.
    """
    cycle, asked, kept = judged
    if on.decider is None or question.traits is None or not on.switches.enforces:
        return None
    if not kept.rows.size:
        return None
    case = decider.Asked(question.pod, question.traits, view, kept.rows)
    if kept.rows.size == 1:
        on.decider.sent(case, kept.names[0])
        return None
    if len(asked.names) == 1:
        return None
    place = on.decider.decide(
        case,
        lambda: prioritize.points(on.plugins.score(cycle, view, kept.rows, now)),
        now,
    )
    if place is None:
        return None
    on.decider.sent(case, kept.names[place])
    return kept.names[place]


def _answer_nodes(on: parts.Parts, written: bytes, request: views.PodInfo, now: float) -> bytes:
    nodes = parts.NODES.decode(written)
    view, candidates = on.overlay(nodes)
    judged = _judge(on, view, (on.plugins.cycle(request, view), candidates), now, live=False)
    kept = tuple(itertools.compress(nodes.items, (judged.codes == 0).tolist()))
    return parts.ENCODER.encode(
        wire.FilterResult(
            nodes=wire.RawNodes(kept, nodes.kind, nodes.api_version),
            failed_nodes=judged.failed(resolvable=True),
            failed_and_unresolvable_nodes=judged.failed(resolvable=False),
        )
    )


def _judge(
    on: parts.Parts,
    view: views.View,
    asked: tuple[pipeline.Cycle, request_codec.Candidates],
    now: float,
    *,
    live: bool,
) -> _Judgement:
    """Judge the names of one call; in observe mode only unknown names are refused."""
    cycle, candidates = asked
    rows = candidates.rows
    refusals: tuple[pipeline.Refusal, ...] = ()
    unknown = rows < 0
    some = np.count_nonzero(unknown)
    if on.switches.asks:
        known = rows[~unknown] if some else rows
        outcome = on.plugins.filter(cycle, view, known, now)
        found, refusals = outcome.codes, outcome.refusals
        if live and on.switches.enforces and _is_passed_over(on, view, cycle, (known, found), now):
            refusals = (*refusals, _PASSED_OVER)
            found[found == 0] = len(refusals)
        codes = found
        if some:
            codes = np.zeros(rows.size, dtype=np.int16)
            codes[~unknown] = found
    else:
        codes = np.zeros(rows.size, dtype=np.int16)
    refusals = (*refusals, _UNKNOWN)
    if some:
        # kube-scheduler saw them come, or go, before this process or after it.
        codes[unknown] = len(refusals)
    is_refused = on.switches.asks and np.count_nonzero(codes)
    if live and (is_refused or cycle.pod.key in on.explanations):
        _explain(on, view, cycle, _Judgement(candidates, codes, refusals), now)
    if not on.switches.enforces:
        codes[~unknown] = 0
    return _Judgement(candidates, codes, refusals)


def _is_passed_over(
    on: parts.Parts,
    view: views.View,
    cycle: pipeline.Cycle,
    judged: tuple[verdicts.Rows, verdicts.Codes],
    now: float,
) -> bool:
    """Whether a pod is to be tried once more, on a node that the scheduler has left out.

    Of many nodes kube-scheduler looks at some only. Where a Reservation with an order keeps a place
    for the pod, as of a pod that is moved, and its node is not among them, all of these are refused
    for a while: the pod is nominated to that node, which the scheduler then looks at first.
    """
    rows, codes = judged
    if not on.plugins.reserved.concerns(cycle) or np.count_nonzero(codes) == codes.size:
        return False
    if not on.waits.may_pass_over(cycle.pod, now):
        return False
    return on.plugins.reserved.prefers_others(cycle, view, rows)


def _explain(
    on: parts.Parts, view: views.View, cycle: pipeline.Cycle, judged: _Judgement, now: float
) -> None:
    request = cycle.pod
    counts = np.bincount(judged.codes, minlength=len(judged.refusals) + 1).tolist()
    by_refusal = {
        refusal: count for refusal, count in zip(judged.refusals, counts[1:], strict=True) if count
    }
    explanation = explanations.Explanation(
        pod=request.key,
        uid=request.uid,
        at=now,
        mode=str(on.switches.mode),
        asked=len(judged.names),
        passed=counts[0],
        reasons=_summed((one.status.reason, count) for one, count in by_refusal.items()),
        spelled=_spelled(on, view, (cycle, judged), counts, now),
    )
    by_plugin = _summed(((one.plugin, one.status.reason), n) for one, n in by_refusal.items())
    is_new = on.explanations.put(explanation)
    if explanation.passed or not on.switches.enforces:
        on.waits.settled(request.key)
    elif by_refusal:
        rows, unknown = judged.known()
        attempt = unschedulable_pods.attempt_on(view, rows, unknown)
        on.waits.refused(request, attempt, now, passed_over=_PASSED_OVER in by_refusal)
        if on.plugins.reserved.serves_others(cycle, view, rows):
            on.waits.passed_over(request.key)
        if any(on.plugins.names_victims(refusal.plugin) for refusal in by_refusal):
            on.preemptions.refused(request.key)
    on.tell(parts.Refused(request, explanation, by_plugin, is_new))


def _summed(counts: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    total: dict[_Key, int] = {}
    for key, count in counts:
        total[key] = total.get(key, 0) + count
    return total


def _spelled(
    on: parts.Parts,
    view: views.View,
    asked: tuple[pipeline.Cycle, _Judgement],
    counts: Sequence[int],
    now: float,
) -> Callable[[], dict[str, str]]:
    """Keep what some refusals were based on, to be put into words when it is read."""
    cycle, judged = asked
    chosen = judged.samples(counts)
    places = [place for place in chosen if judged.candidates.rows[place] >= 0]
    unknown = {judged.names[place]: UNKNOWN.text for place in chosen if place not in places}
    refusals = [judged.refusals[code - 1] for code in judged.codes[places].tolist()]
    # Where NUMA nodes cannot be aligned, each plug-in says by its own figures what it could give.
    judges = {refusal.plugin for refusal in refusals}
    kept = view.several(
        judged.candidates.rows[places].tolist(), None if numa.NAME in judges else judges
    )
    refused = tuple(zip(kept.names, refusals, strict=True))
    judged_by = on.plugins.pre_filters

    def spelled() -> dict[str, str]:
        if on.plugins.pre_filters is not judged_by:
            # Others are in force by now and mean other columns.
            return {name: refusal.status.text for name, refusal in refused} | unknown
        return {
            name: on.plugins.sentence(cycle, kept, row, refusal, now)
            for row, (name, refusal) in enumerate(refused)
        } | unknown

    return spelled
