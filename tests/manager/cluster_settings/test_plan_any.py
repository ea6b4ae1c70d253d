"""Whatever is written, the settings are read, and what is bad leaves everything else as it was."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from api.koordinator.settings import configuration
from api.kubernetes import meta
from manager.cluster_settings import effective
from manager.cluster_settings import plan as cluster_settings
from tests import draws

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.sampled_from(["", "10%", "50M", "static", "9" * 400 + "h", "1e999"]),
    st.just([{}]),
)
FIELDS = sorted(
    {
        "nodeSelector",
        "nodeConfigs",
        "nodeStrategies",
        "clusterStrategy",
        "applications",
        "beClass",
        "memoryQOS",
        "networkQOS",
        "ingressLimit",
        "metricAggregatePolicy",
        "durations",
        "ratioModel",
        "matchLabels",
        "totalNetworkBandwidth",
        "cpuSuppressThresholdPercent",
        "policy",
        "enable",
        "ENABLE",
        "x",
    }
)
DOCUMENTS = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4), st.lists(inner, max_size=3)
    ),
    max_leaves=12,
)
TEXTS = st.one_of(DOCUMENTS.map(json.dumps), st.text(max_size=8))
GOOD = cluster_settings.read(
    None,
    {
        configuration.COLOCATION: '{"enable": true, "cpuReclaimThresholdPercent": 70}',
        configuration.CPU_BURST: '{"clusterStrategy": {"policy": "auto"}}',
    },
).settings
LABELS = {"pool": "gold"}


@settings(max_examples=draws.at_least(150), derandomize=True)
@given(st.dictionaries(st.sampled_from(sorted(configuration.MODELS)), TEXTS, max_size=3))
def test_any_text_is_read_or_keeps_what_was_said_before(data) -> None:
    reading = cluster_settings.read(GOOD, data)
    kept = {one.key for one in reading.problems if one.effect is cluster_settings.Effect.KEPT}
    for key in kept:
        assert reading.settings.sections[key] == GOOD.sections[key]
    for key in effective.DEFAULTS.keys() - data.keys():
        assert reading.settings.sections[key] == effective.DEFAULTS[key]
    assert all(one.path.startswith(one.key) and one.note for one in reading.problems)
    assert reading.settings.available
    assert reading.settings.doubtful is (configuration.COLOCATION in kept)
    # Everything that is asked of it has an answer.
    reading.settings.rules(LABELS, {})
    reading.settings.parts(LABELS)
    reading.settings.normalization(LABELS)
    reading.settings.amplification(LABELS)


@settings(max_examples=draws.at_least(60), derandomize=True)
@given(DOCUMENTS)
def test_reading_again_says_the_same(document) -> None:
    data = dict.fromkeys(configuration.MODELS, json.dumps(document))
    once = cluster_settings.read(GOOD, data)
    again = cluster_settings.read(once.settings, data)
    assert again.settings == once.settings
    assert again.problems == once.problems


def test_an_entry_answers_for_the_nodes_it_selects() -> None:
    entry = effective.Entry(meta.LabelSelector(match_labels=LABELS), {"x": 1})
    section = effective.Section({"x": 0}, (entry,))
    assert (section.of(LABELS), section.of({})) == ({"x": 1}, {"x": 0})
