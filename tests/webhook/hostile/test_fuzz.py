"""Generated reviews of every path over HTTP: an answer, never a fault of ours.

A thousand, the same ones each time; `make fuzz` sends KOORD_FUZZ of them, others each time.
"""

import contextlib
import copy
import json
import os
import random
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names, resources
from api.koordinator import colocation
from api.kubernetes.webhooks import admission
from api.wire import base
from process.configuration import switches
from process.runtime import metrics
from tests.planes.admission import admissions
from tests.webhook.hostile.fuzzed_reviews import (
    CASES,
    CONFIG,
    JUNK,
    NODE,
    ODD,
    QUESTIONS,
    ROUTES,
    SCHEDULER,
    asking,
    places,
    put,
    questions,
    share,
)
from tests.webhook.hostile.fuzzed_webhook import MOST_MEBIBYTES, PICTURE, Served, check
from webhook import conversion, handlers

pytestmark = pytest.mark.timeout(max(120, int(os.environ.get("KOORD_FUZZ", "0")) // 10))


@pytest.fixture(scope="module")
def served():
    made = Served()
    yield made
    made.close()
    print(f"statuses {dict(made.statuses)}, of reviews {dict(made.reviews)}")
    # A worker may run some of these tests only.
    total = made.reviews.total()
    assert not total or made.reviews[200] > total / 2, made.reviews


@share("objects")
@given(questions())
def test_objects_of_any_shape_are_answered(served, question):
    path, made = question
    check(served, path, json.dumps(made).encode())


PROFILE_PLACES = [
    (raw, list(places(raw["spec"])))
    for raw in (profile.wire() for profile in admissions.PROFILES[:200])
    if raw.get("spec")
]


@share("profiles")
@given(st.data())
def test_profiles_of_any_shape_change_pods_or_are_left_out(served, data):
    raw, where = data.draw(st.sampled_from(PROFILE_PLACES))
    made = copy.deepcopy(raw)
    for place in data.draw(st.lists(st.sampled_from(where), max_size=3)) if where else ():
        put(made["spec"], place, data.draw(JUNK))
    try:
        profile = colocation.read_profile(json.loads(json.dumps(made)))
    except base.ReadError:
        return
    served.picture = PICTURE.but(profiles=(profile, *admissions.PROFILES[:2]))
    pod = data.draw(admissions.pods)
    check(served, "/mutate-pod", json.dumps(asking("/mutate-pod", resources.PODS, pod)).encode())
    served.picture = PICTURE


SETTINGS_PLACES = {
    key: (document, list(places(document)))
    for key, document in ((key, json.loads(text)) for key, text in CONFIG["data"].items())
}


@share("settings")
@given(st.data())
def test_settings_of_any_shape_are_answered(served, data):
    made = copy.deepcopy(CONFIG)
    for key in data.draw(st.lists(st.sampled_from(sorted(SETTINGS_PLACES)), max_size=2)):
        document, where = SETTINGS_PLACES[key]
        changed = copy.deepcopy(document)
        for place in data.draw(st.lists(st.sampled_from(where), max_size=3)):
            put(changed, place, data.draw(JUNK))
        text = json.dumps(changed)
        cut = data.draw(st.integers(0, len(text)))
        whole = data.draw(st.booleans())
        made["data"][key] = text if whole else text[:cut] + data.draw(st.text(max_size=3))
    old = data.draw(st.sampled_from((None, CONFIG, {})))
    path = "/validate-configmap"
    operation = "CREATE" if old is None else "UPDATE"
    asked = asking(path, resources.CONFIG_MAPS, made, operation, old)
    check(served, path, json.dumps(asked).encode())
    labelled = asking("/validate-node", resources.NODES, NODE, "UPDATE", {"metadata": {}})
    served.picture = PICTURE.but(settings=made["data"])
    check(served, "/validate-node", json.dumps(labelled).encode())
    served.picture = PICTURE


SCHEDULER_PLACES = list(places(SCHEDULER))


@share("scheduler")
@given(st.data())
def test_scheduler_configurations_of_any_shape_are_answered(served, data):
    changed = copy.deepcopy(SCHEDULER)
    for place in data.draw(st.lists(st.sampled_from(SCHEDULER_PLACES), max_size=3)):
        put(changed, place, data.draw(JUNK))
    text = json.dumps(changed)
    whole, cut = data.draw(st.booleans()), data.draw(st.integers(0, len(text)))
    name = names.CONFIG_MAP_SCHEDULER
    written = text if whole else text[:cut] + data.draw(st.text(max_size=3))
    made = {"metadata": {"name": name}, "data": {name: written}}
    path = "/validate-configmap"
    check(served, path, json.dumps(asking(path, resources.CONFIG_MAPS, made)).encode())


@pytest.mark.parametrize("deep", [odd for odd in ODD if odd[-1:] in b"]}" and len(odd) > 9000])
def test_what_is_nested_too_deeply_to_be_read_is_answered(served, deep):
    path, question = QUESTIONS[0]
    question = copy.deepcopy(question)
    question["request"]["object"]["unknown"] = "HERE"
    check(served, path, json.dumps(question).encode().replace(b'"HERE"', deep))


@share("texts")
@given(st.data())
def test_bytes_of_any_kind_are_answered_or_refused(served, data):
    path, question = QUESTIONS[data.draw(st.integers(0, len(QUESTIONS) - 1))]
    body = bytearray(json.dumps(question).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        cut = data.draw(st.integers(0, 3))
        body[at : at + cut] = data.draw(st.one_of(st.binary(max_size=4), st.sampled_from(ODD)))
    if data.draw(st.integers(0, 9)) == 0:
        path = conversion.PATH
        status, _ = served.post(path, bytes(body))
        assert status in (200, 400, 413)
        return
    check(served, path, bytes(body), shaped=False)


def peak():
    """The most memory that this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_answers_leave_nothing_behind():
    """Ever new values fill what is remembered between reviews, and no more than that."""
    rng, live = random.Random(CASES), switches.Switches("webhook")
    reviews = handlers.Admission(lambda: PICTURE, metrics.Registry(), live)
    before, kinds = 0.0, [(*found, list(places(found[1]["request"]))) for found in QUESTIONS]
    for number in range(CASES // 2):
        if number == CASES // 8:
            before = peak()
        path, question, where = rng.choice(kinds)
        made = copy.deepcopy(question)
        new = f"{number}m", f"x{number}", number * 10**6, {f"k{number}": [f"v{number}"]}
        for place in rng.sample(where, 2):
            put(made["request"], place, rng.choice(new))
        with contextlib.suppress(admission.ReviewError):
            asked = admission.decode(json.dumps(made).encode())
            answer, result = reviews.answer(ROUTES[path], asked, PICTURE)
            assert result != "failed", answer
    assert peak() - before < MOST_MEBIBYTES
