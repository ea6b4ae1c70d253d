"""YAML of a ConfigMap: plain values, or a refusal that says where; never slow."""

import contextlib

import hypothesis
import pytest
from hypothesis import strategies as st

from domain.scheduler_settings import bounded_yaml
from tests import draws, processor_time


def test_plain_values_come_out():
    found = bounded_yaml.parse("a: 1\nb: [x, 2024-01-01, true, 1.5, null, 1:30]\n'3': {c: 0x1F}\n")
    assert found == {"a": 1, "b": ["x", "2024-01-01", True, 1.5, None, "1:30"], "3": {"c": 31}}


BOMB = "a: &a [x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi"))  # noqa: B905 - one is longer


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(BOMB, "line 2: an alias (*) is not read", id="aliases"),
        pytest.param("a: !!python/object:os.system x", "line 1: a tag (!) is not read", id="tag"),
        pytest.param("a: !!binary aGk=", "a tag (!) is not read", id="binary"),
        pytest.param("[" * 30_000, "more than 24 levels deep", id="deep list"),
        pytest.param("{a: " * 5_000, "more than 24 levels deep", id="deep object"),
        pytest.param("- " * 30_000, "more than 24 levels deep", id="deep block"),
        pytest.param("[" + "1," * 12_000, "more than the 10000 parts", id="many parts"),
        pytest.param("x" * 70_000, "more than the 65536 that are read", id="long"),
        pytest.param("a: 1\nb: 1\na: 2", "line 3: a is there twice", id="twice"),
        pytest.param("1: 2", "line 1: a key is no text; quote it", id="number as a key"),
        pytest.param("? [a]\n: b", "a key is no text", id="list as a key"),
        pytest.param("a: 1\n---\nb: 2", "holds a second document", id="two documents"),
        pytest.param("9" * 5000, "is too long for a number", id="long number"),
        pytest.param("0b" + "1" * 60_000, "is too long for a number", id="long binary number"),
        pytest.param(".inf", "is no finite number", id="infinity"),
        pytest.param("1.0e+400", "is no finite number", id="overflow"),
        pytest.param("a: .nan", "is no finite number", id="not a number"),
        pytest.param("a: [", "is not YAML: line 2: ", id="open list"),
        pytest.param("\x00", "is not YAML", id="control character"),
        pytest.param("\ud800", "is not YAML", id="surrogate"),
    ],
)
def test_everything_else_is_refused_with_its_place(text, said):
    with processor_time.below(0.5), pytest.raises(bounded_yaml.YamlError) as caught:
        bounded_yaml.parse(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


LETTERS = st.sampled_from("a1:-[]{}&*!,'\"\n\t #?|>%@\\<=~\u00e9\ud800")


@hypothesis.settings(max_examples=draws.at_least(150), deadline=None)
@hypothesis.given(st.text(LETTERS, max_size=40))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(bounded_yaml.YamlError):
        bounded_yaml.parse(text)
