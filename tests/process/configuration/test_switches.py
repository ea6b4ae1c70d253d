"""The live switch overrules the setting, and only words that are known count."""

import pytest

from process.configuration import switches


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(None, "enforce", id="no map"),
        pytest.param({}, "enforce", id="no key"),
        pytest.param({"webhook": "off"}, "off", id="off"),
        pytest.param({"webhook": "observe"}, "observe", id="observe"),
        pytest.param({"webhook": " Off\n"}, "off", id="as people type it"),
        pytest.param({"webhook": "of"}, "enforce", id="unknown word"),
        pytest.param({"extender": "off"}, "enforce", id="another process"),
    ],
)
def test_the_word_in_the_map_counts(data, expected):
    live = switches.Switches("webhook")
    live.take(data)
    assert live.mode == expected


def test_an_unknown_word_leaves_what_was_said_last():
    live = switches.Switches("webhook", switches.Mode.OBSERVE)
    live.take({"webhook": "off"})
    live.take({"webhook": "offf"})
    assert live.mode is switches.Mode.OFF
    live.take({})
    assert live.mode is switches.Mode.OBSERVE
