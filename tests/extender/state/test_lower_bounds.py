"""Bounds that are kept over changes are never higher than the figures, and change no verdict."""

import dataclasses

import hypothesis
import numpy as np
from hypothesis import strategies as st

from extender.framework import pipeline
from extender.state.table import lower_bounds
from tests import draws
from tests.extender.conftest import NOW

NAMES = ("n1", "n2", "n3")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(NAMES), st.sampled_from(["1000", "8000"])),
        st.tuples(st.just("gone"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("report"), st.sampled_from(NAMES), st.sampled_from(["1", "70", "120"])),
        st.tuples(st.just("unreported"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("pod"), st.sampled_from(NAMES), st.sampled_from(["1", "6", "40"])),
        st.tuples(st.just("lend"), st.just(""), st.sampled_from([10, 60])),
    ),
    max_size=10,
)


def _step(picture, make, number, step):
    what, name, value = step
    if what == "node":
        lent = {"kubernetes.io/batch-cpu": value, "kubernetes.io/batch-memory": "8Gi"}
        picture.add(make.node(name, **lent))
    elif what == "gone":
        picture.books.node(picture.cluster.node(name), None)
    elif what == "report":
        picture.add(make.metric(name, cpu=value, memory="10Gi"))
    elif what == "unreported":
        picture.books.report(name, None)
    elif what == "lend":
        picture.lend(value)
    else:
        band = ("koord-prod", "koord-batch")[number % 2]
        picture.add(make.pod(f"p{number % 3}", node=name, band=band, requests={"cpu": value}))


def _verdicts(plugins, picture, pod, moment):
    view = picture.cluster.view()
    asked = plugins.cycle(pod, view)
    outcome = plugins.filter(asked, view, np.arange(len(view.names)), moment)
    return [outcome.refusal(row) for row in sorted(view.rows.values())]


@hypothesis.settings(
    max_examples=draws.at_least(60),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(steps=STEPS, cpu=st.sampled_from(["1", "7", "50"]))
def test_no_node_that_a_look_would_refuse_is_let_pass(fresh_picture, make, steps, cpu):
    picture = fresh_picture()
    pods = [
        picture.request(make.pod("asked", band=band, requests={"cpu": cpu}))
        for band in ("koord-prod", "koord-batch")
    ]
    without: pipeline.Pipeline = dataclasses.replace(picture.pipeline, screens={})
    assert {"LoadAware", "BatchFit"} <= picture.pipeline.screens.keys()
    for number, step in enumerate(steps):
        _step(picture, make, number, step)
        view = picture.cluster.view()
        known = sorted(view.rows.values())
        for plugin, figures in view.figures.items():
            lowest = view.lowest(plugin)
            present = figures[:, known]
            if present.size:
                assert (np.array(lowest) <= present.min(axis=1)).all()
        for pod in pods:
            for moment in (NOW, NOW + 10_000):
                screened = _verdicts(picture.pipeline, picture, pod, moment)
                assert screened == _verdicts(without, picture, pod, moment)


def test_bounds_become_exact_again_after_many_changes():
    kept, figures = lower_bounds.LowerBounds(), np.array([[5, 9], [7, 3]])
    assert kept.get("plugin", lambda: figures) == [5, 3]
    kept.changed("plugin", (1, 8))
    assert kept.get("plugin", lambda: figures) == [1, 3]
    for _ in range(255):
        kept.changed("plugin", (6, 8))
    assert kept.get("plugin", lambda: figures) == [5, 3]


def test_bounds_of_a_matrix_that_was_replaced_are_forgotten():
    kept = lower_bounds.LowerBounds()
    assert kept.get("plugin", lambda: np.array([[5]])) == [5]
    kept.forget("plugin")
    kept.changed("plugin", (1,))
    assert kept.get("plugin", lambda: np.array([[8]])) == [8]


def test_one_node_and_what_might_be_have_no_bounds(picture, make):
    picture.add(make.node("n1"), make.metric("n1"))
    view = picture.cluster.view()
    assert view.lowest("LoadAware") is not None
    assert view.only(0).lowest("LoadAware") is None
    assert view.with_claims(0).lowest("LoadAware") is None
