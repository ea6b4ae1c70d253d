"""Text of the console can be read: its colours differ enough, in light and in dark."""

import re

import pytest

from manager.console import assets

LEAST_TEXT, LEAST_GRAPHIC = 4.5, 3.0
CSS = assets.read()["console.css"].body.decode()
BLOCKS = re.findall(r":root \{(.*?)\}", CSS, re.S)
ON = ("bg", "panel")
TEXT = ("text", "soft", "link", "bad", "good", "warn")
GRAPHIC = ("focus", "online", "batch", "minus", "result")


def colours(block):
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))


def luminance(colour):
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_differ_enough(scheme):
    found = colours(BLOCKS[scheme])
    for least, names in ((LEAST_TEXT, TEXT), (LEAST_GRAPHIC, GRAPHIC)):
        for name in names:
            for ground in ON:
                assert contrast(found[name], found[ground]) >= least, (name, ground)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_steps_of_the_heat_map_go_one_way(scheme):
    found = colours(BLOCKS[scheme])
    steps = [luminance(found[f"h{step}"]) for step in range(10)]
    assert steps in (sorted(steps), sorted(steps, reverse=True))


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
