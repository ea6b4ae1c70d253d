"""Whether a quota has room for new pods gives the recorded answers."""

import json

from api import names
from api.koordinator import quota
from api.wire import base
from tests.reference import cases, differences_quota
from webhook.rules.quotas import quota_evaluation

CHILD_REQUEST = names.ANNOTATION_QUOTA_CHILD_REQUEST


def recorded(case):
    return [
        {
            "results": [_result(one) for one in batch["results"]],
            "used": _amounts(batch["childRequest"]),
        }
        for batch in case.expected["batches"]
    ]


def _result(one):
    error = one.get("error", "")
    return error if error.startswith("exceeded quota") else bool(error)


def _amounts(written):
    return quota.amounts(written) if isinstance(written, dict) else written


def answer(case):
    """Evaluate the pods of every batch one after the other and write what they add up to."""
    body, answers = case.given["quota"], []
    for batch in case.given["batches"]:
        results, used = _evaluated(body, batch)
        notes = body["metadata"].get("annotations") or {}
        if used is not None:
            notes = {**notes, CHILD_REQUEST: used}
            body = {**body, "metadata": {**body["metadata"], "annotations": notes}}
        answers.append({"results": results, "used": _written(notes.get(CHILD_REQUEST))})
    return answers


def _evaluated(body, batch):
    try:
        before = now = quota_evaluation.balance(body)
    except base.ReadError:
        return [True] * len(batch), None
    results = []
    for pod in batch:
        now, refused = quota_evaluation.charged(now, quota_evaluation.requests(pod))
        results.append(refused or False)
    return results, None if now == before else now.text()


def _written(text):
    try:
        return None if text is None else _amounts(json.loads(text))
    except ValueError:
        return text


def test_pods_are_charged_as_recorded():
    cases.check("quota_evaluation", answer, recorded, differences_quota.EVALUATION)
