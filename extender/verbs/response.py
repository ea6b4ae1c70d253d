"""Answers to kube-scheduler that do not depend on what was asked."""

import orjson

NO_SCORES = b"[]"
NOTHING_FAILED = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def failure(text: str) -> bytes:
    """Return the answer of filter, preempt or bind for a failure of ours."""
    return orjson.dumps({"Error": text})
