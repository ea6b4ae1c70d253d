"""The responses to the last reviews, for people who ask why an object is as it is, or is not.

Only answers that did something are kept, the newest for each object and path.
"""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from api.kubernetes.webhooks import admission
from api.wire import durations
from process.runtime import clock as clocks
from webhook import review

MOST = 2000
_LONGEST = 200
_LONGEST_SUBJECT = 400
_LONGEST_SENTENCE = 500
_MOST_SENTENCES = 16
_MOST_EFFECTS = 64


class Answer(NamedTuple):
    """The response to one review."""

    at: float
    kind: str
    """Plural of what the object is."""
    subject: str
    """namespace/name; the start of a name and a star where the API server was to make one."""
    operation: str
    result: str
    decision: review.Decision
    dry_run: bool


class Answers:
    """The newest responses; the oldest are forgotten first."""

    def __init__(self, clock: clocks.Clock, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._kept: collections.OrderedDict[tuple[str, str, str], Answer] = (
            collections.OrderedDict()
        )

    def put(
        self, asked: admission.Request, subject: str, decision: review.Decision, result: str
    ) -> None:
        """Keep an answer."""
        kind, kept = asked.resource.resource, self._kept
        # Nothing is validated yet: a name or an annotation may be as long as a request.
        subject = subject[:_LONGEST_SUBJECT]
        key = (kind, subject, "refused" if decision.refusal else "changed")
        kept.pop(key, None)
        kept[key] = Answer(
            self._clock.now(), kind, subject, asked.operation, result,
            _bounded(decision), bool(asked.dry_run),
        )  # fmt: skip
        if len(kept) > self._most:
            kept.popitem(last=False)

    def about(self, kind: str, subject: str) -> list[Answer]:
        """Return what was answered about an object, the oldest first."""
        found = [
            answer
            for answer in self._kept.values()
            if answer.kind == kind and _means(answer.subject, subject)
        ]
        return sorted(found, key=lambda answer: answer.at)

    def routes(self, pages: web.Application) -> web.Application:
        """Add the page."""

        async def shown(request: web.Request) -> web.Response:
            kind, subject = next(iter(request.query.items()), ("", ""))
            if not subject or len(request.query) != 1:
                error = "name one object by its kind, for instance pods=NAMESPACE/NAME"
                return web.json_response({"error": error}, status=400)
            kind = "pods" if kind == "pod" else kind
            found = [_document(answer) for answer in self.about(kind, subject)]
            if not found:
                error = f"nothing was changed or refused about {subject} lately"
                return web.json_response({"error": error}, status=404)
            return web.json_response({"answers": found})

        pages.router.add_get("/debug/reviews", shown)
        return pages


def _means(kept: str, asked: str) -> bool:
    return kept == asked or (kept.endswith("*") and asked.startswith(kept[:-1]))


def _document(answer: Answer) -> dict[str, Any]:
    refusal = answer.decision.refusal
    return {
        "at": durations.precise_moment(answer.at),
        "kind": answer.kind,
        "object": answer.subject,
        "operation": answer.operation,
        "dryRun": answer.dry_run,
        "result": answer.result,
        "group": refusal.group if refusal else "",
        "reasons": list(refusal.reasons) if refusal else [],
        "warnings": list(answer.decision.warnings),
        "effects": [
            {"by": one.by, "path": one.path, "before": one.before, "after": one.after}
            for one in answer.decision.effects
        ],
    }


def _bounded(decision: review.Decision) -> review.Decision:
    """Return what is kept of a decision, however long what its author wrote."""
    refusal = decision.refusal
    if refusal is not None:
        refusal = dataclasses.replace(refusal, reasons=_sentences(refusal.reasons))
    effects = tuple(
        one._replace(field=one.field[:_LONGEST], before=_short(one.before), after=_short(one.after))
        for one in decision.effects[:_MOST_EFFECTS]
    )
    # The object itself is in the cluster, or is not to be kept.
    return review.Decision(refusal, None, _sentences(decision.warnings), effects)


def _sentences(told: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text[:_LONGEST_SENTENCE] for text in told[:_MOST_SENTENCES])


def _short(value: Any) -> Any:
    if isinstance(value, (Mapping, list)):
        text = msgspec.json.encode(value).decode()
        return value if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}…"
    return value
