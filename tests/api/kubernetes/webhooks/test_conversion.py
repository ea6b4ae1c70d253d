"""Objects move between the versions of one schema; everything else is refused by name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes.webhooks import conversion

GROUPS = {"slo.koordinator.sh"}
HERE, THERE = "slo.koordinator.sh/v1alpha1", "slo.koordinator.sh/v1beta1"


def slo(version=HERE, **fields):
    return {"apiVersion": version, "kind": "NodeSLO", "metadata": {"name": "n"}, **fields}


def asked(*objects, desired=THERE):
    return conversion.Request("u", desired, list(objects))


def test_the_version_is_rewritten_and_nothing_else():
    answer = conversion.convert(asked(slo(spec={"a": [1, None]}), slo(THERE)), GROUPS)
    assert answer.objects == (slo(THERE, spec={"a": [1, None]}), slo(THERE))
    assert not answer.problem


@pytest.mark.parametrize(
    ("found", "desired", "saying"),
    [
        pytest.param(slo(), "quota.koordinator.sh/v1", "cannot move from group", id="other group"),
        pytest.param(slo(), "v1", "the core group", id="to the core group"),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v2", "no kind", id="foreign kind"
        ),
        pytest.param({"kind": "NodeSLO"}, THERE, "must be texts", id="no version"),
        pytest.param({"apiVersion": HERE, "kind": 1}, THERE, "must be texts", id="odd kind"),
    ],
)
def test_what_cannot_be_converted_is_named(found, desired, saying):
    answer = conversion.convert(asked(found, desired=desired), GROUPS)
    assert saying in answer.problem
    assert not answer.objects
    written = json.loads(conversion.encode(answer))["response"]
    assert written["uid"] == "u"
    assert written["result"]["status"] == "Failed"
    assert "objects[" in written["result"]["message"]


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()))
def test_going_there_and_back_changes_nothing(fields):
    found = {**fields, "apiVersion": HERE, "kind": "NodeSLO"}
    there = conversion.convert(asked(found), GROUPS).objects
    (back,) = conversion.convert(asked(*there, desired=HERE), GROUPS).objects
    assert back == found


def review(**request):
    return {
        "apiVersion": conversion.API_VERSION,
        "kind": "ConversionReview",
        "request": {"uid": "u", "desiredAPIVersion": THERE, "objects": [], **request},
    }


def test_a_review_is_read_and_answered():
    read = conversion.decode(json.dumps(review(objects=[slo()])).encode())
    written = json.loads(conversion.encode(conversion.convert(read, GROUPS)))
    assert written["kind"] == "ConversionReview"
    assert written["response"] == {
        "uid": "u",
        "convertedObjects": [slo(THERE)],
        "result": {"status": "Success"},
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="not utf-8"),
        pytest.param(b'{"request":{}}', id="no uid"),
        pytest.param(json.dumps(review(desiredAPIVersion="")).encode(), id="no wish"),
        pytest.param(json.dumps(review(objects=[1])).encode(), id="no object"),
        pytest.param(json.dumps({**review(), "kind": "AdmissionReview"}).encode(), id="admission"),
    ],
)
def test_another_body_is_refused(body):
    with pytest.raises(conversion.ReviewError, match="ConversionReview"):
        conversion.decode(body)
