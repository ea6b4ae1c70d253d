"""Which profiles concern a pod, and what a stored pod says about having met them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator import colocation
from api.koordinator.metadata import qos
from domain.pods import profiles


def profile(name: str = "p", *, annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    metadata = {"name": name, "annotations": annotations or {}}
    return colocation.read_profile({"metadata": metadata, "spec": spec})


def stored(**changes: Any) -> profiles.Stored:
    given: dict[str, Any] = {
        "labels": {},
        "annotations": {},
        "priority_class": "",
        "scheduler": "default-scheduler",
        "band": qos.Band.NONE,
        "native": True,
        **changes,
    }
    return profiles.Stored(**given)


SELECTING = {"selector": {"matchLabels": {"a": "b"}}}
IN_TEAM = {"namespaceSelector": {"matchLabels": {"team": "x"}}}


@pytest.mark.parametrize(
    ("spec", "namespace", "labels", "expected"),
    [
        pytest.param({}, {}, {}, True, id="no selector selects all"),
        pytest.param(SELECTING, {}, {"a": "b"}, True, id="by label"),
        pytest.param(SELECTING, {}, {"a": "c"}, False, id="other label"),
        pytest.param(IN_TEAM, {"team": "x"}, {}, True, id="by namespace"),
        pytest.param(IN_TEAM, {"team": "y"}, {}, False, id="other namespace"),
        pytest.param(IN_TEAM, None, {}, True, id="namespace not known"),
        pytest.param({**IN_TEAM, **SELECTING}, None, {}, False, id="both must select"),
    ],
)
def test_selection(spec: Any, namespace: Any, labels: Any, expected: bool) -> None:
    assert profiles.matches(profile(**spec), namespace, labels) is expected


@given(st.integers(-5, 120), st.integers(0, 99))
def test_a_certain_profile_is_chosen_by_every_lot(percent: int, lot: int) -> None:
    chosen = profiles.chosen(percent, lot)
    if profiles.is_certain(profile(probability=percent)):
        assert chosen
    if percent <= 0:
        assert not chosen


FULL = profile(
    qosClass="BE",
    priorityClassName="koord-batch",
    schedulerName="koord-scheduler",
    labels={"tier": "low"},
)
APPLIED = stored(
    labels={names.LABEL_QOS: "BE", "tier": "low"},
    priority_class="koord-batch",
    scheduler="koord-scheduler",
    band=qos.Band.BATCH,
    native=False,
)
LABELS_ONLY = profile(labels={"tier": "low"}, annotations={}, qosClass="LS")


@pytest.mark.parametrize(
    ("among", "pod", "saying"),
    [
        pytest.param([FULL], APPLIED, "", id="applied"),
        pytest.param([FULL], stored(), "spec.schedulerName is not 'koord-scheduler'", id="missed"),
        pytest.param(
            [FULL],
            stored(annotations={names.ANNOTATION_PROFILES: "p"}),
            "",
            id="signed by admission, whatever was changed since",
        ),
        pytest.param(
            [FULL],
            stored(
                priority_class="koord-batch",
                scheduler="koord-scheduler",
                band=qos.Band.BATCH,
                native=False,
            ),
            "",
            id="labels taken away later",
        ),
        pytest.param([LABELS_ONLY], stored(), "tier", id="no trace of any label"),
        pytest.param([LABELS_ONLY], stored(labels={"tier": "low"}), "", id="one label is left"),
        pytest.param(
            [profile(schedulerName="s", probability=98)], stored(), "", id="perhaps skipped by lot"
        ),
        pytest.param(
            [profile(schedulerName="s", probability="99%")], stored(), "schedulerName", id="no lot"
        ),
        pytest.param([profile(schedulerName="s", probability=0)], stored(), "", id="switched off"),
        pytest.param(
            [profile("a", schedulerName="s"), profile("b", schedulerName="t", probability=50)],
            stored(scheduler="t"),
            "",
            id="perhaps overwritten by a later one",
        ),
        pytest.param(
            [profile("b", schedulerName="t"), profile("a", schedulerName="s")],
            stored(scheduler="s"),
            "is not 't'",
            id="the later one counts",
        ),
        pytest.param(
            [profile(schedulerName="s", patch={"spec": {"schedulerName": "x"}})],
            stored(scheduler="x"),
            "",
            id="its own patch may say otherwise",
        ),
        pytest.param(
            [profile(labelSuffixes={"tier": "-x"}, labels={"tier": "a"})],
            stored(labels={"tier": "a-x"}),
            "",
            id="suffix",
        ),
        pytest.param(
            [profile()], stored(band=qos.Band.BATCH), "native cpu or memory", id="not rewritten"
        ),
        pytest.param(
            [profile(probability=98)], stored(band=qos.Band.BATCH), "", id="perhaps left by lot"
        ),
        pytest.param(
            [profile(annotations={names.ANNOTATION_SKIP_UPDATE_RESOURCES: ""})],
            stored(band=qos.Band.BATCH),
            "",
            id="resources are to be left",
        ),
        pytest.param([], stored(band=qos.Band.BATCH), "", id="no profile"),
    ],
)
def test_what_a_stored_pod_lacks(among: Any, pod: profiles.Stored, saying: str) -> None:
    found = profiles.passed_by(among, pod, rewrites=True)
    assert saying in found if saying else not found


def test_rewriting_may_be_off() -> None:
    assert not profiles.passed_by([profile()], stored(band=qos.Band.BATCH), rewrites=False)
