"""Nothing secret leaves a cluster, and what is not secret stays readable."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.doctor import redaction

KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\nxyz\n-----END EC PRIVATE KEY-----"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("written", "hidden", "kept"),
    [
        (f"key:\n{KEY}\nafter", "MHcCAQEEIB", "after"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "cut off", "PRIVATE KEY"),
        (f"GET /x token {JWT} done", JWT, "done"),
        ("Authorization: Bearer abcdefgh12345", "abcdefgh12345", "Authorization"),
        ("proxy=http://me:s3cret@proxy:3128/x", "s3cret", "proxy:3128"),
        ('password: "hunter2", next=1', "hunter2", "next=1"),
        ("api_key=AKIA123456 user=x", "AKIA123456", "user=x"),
    ],
)
def test_texts(written, hidden, kept):
    cleaned = redaction.text(written)
    assert hidden not in cleaned
    assert kept in cleaned


@pytest.mark.parametrize(
    "written",
    [
        "listening on 0.0.0.0:9876",
        "renewed lease=koordinator-manager holder=manager-0",
        "mounting secretName=koord-webhook-certificates",
        "tokenFile: /var/run/secrets/token",
    ],
)
def test_ordinary_lines_stay_as_they_are(written):
    assert redaction.text(written) == written


def test_a_secret_keeps_only_its_name():
    secret = {
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "n", "annotations": {"note": "hush"}},
        "type": "Opaque",
        "data": {"a": "aHVzaA=="},
        "stringData": {"b": "hush"},
    }
    assert redaction.thing({"items": [secret]}) == {
        "items": [{"kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "type": "Opaque"}]
    }


def test_members_and_variables_with_telling_names():
    pod = {
        "metadata": {"annotations": {redaction.LAST_APPLIED: '{"password":"x"}', "a": "b"}},
        "env": [
            {"name": "DB_PASSWORD", "value": "hush"},
            {"name": "MODE", "value": "observe"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "volumes": [{"secret": {"secretName": "certificates"}}],
        "automountServiceAccountToken": False,
        "password": "hush",
        "replicas": 3,
    }
    cleaned = redaction.thing(pod)
    assert "hush" not in json.dumps(cleaned)
    assert cleaned["env"][1] == {"name": "MODE", "value": "observe"}
    assert cleaned["env"][2]["valueFrom"]["secretKeyRef"] == {"name": "s", "key": "k"}
    assert cleaned["volumes"][0]["secret"]["secretName"] == "certificates"
    assert cleaned["automountServiceAccountToken"] is False
    assert cleaned["metadata"]["annotations"] == {redaction.LAST_APPLIED: "REDACTED", "a": "b"}
    assert cleaned["replicas"] == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_cleaning_twice_is_cleaning_once_and_no_key_survives(value):
    cleaned = redaction.thing({"any": value, "log": KEY})
    assert redaction.thing(cleaned) == cleaned
    assert "MHcCAQEEIB" not in json.dumps(cleaned)
