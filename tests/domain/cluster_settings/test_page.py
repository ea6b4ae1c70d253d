"""docs/cluster-settings.md says what is allowed, no more and no less."""

import pathlib
import re

from api.koordinator.settings import configuration
from domain.cluster_settings import value_limits as limits
from manager.cluster_settings import strategy

PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "cluster-settings.md").read_text()
ROW = re.compile(r"^\| `([A-Za-z.\[\]]+)` \| ([^|]*) \|(?: ([^|]*) \|)?", re.MULTILINE)
TABLES = {
    **limits.COLOCATION,
    **limits.THRESHOLDS,
    **limits.BURST,
    **limits.SYSTEM,
    **limits.OVERRIDES,
    **{
        f"{part}.{name}": one for part, all_ in limits.QUALITY.items() for name, one in all_.items()
    },
}
WORDS = {
    **limits.COLLECTION_WORDS,
    **limits.THRESHOLD_WORDS,
    **{f"policies.{name}": known for name, known in limits.POLICY_WORDS.items()},
    **{f"blkioQOS.blocks[].{name}": known for name, known in limits.BLOCK_WORDS.items()},
    **{f"applications[].{name}": known for name, known in limits.HOST_WORDS.items()},
}


def test_every_word_is_written_down() -> None:
    written = {name: allowed for name, allowed, _ in ROW.findall(PAGE)}
    assert {name: written.get(name) for name in WORDS} == {
        name: ", ".join(f"`{word}`" for word in known) for name, known in WORDS.items()
    }


def test_every_limit_is_written_down() -> None:
    written = {name: allowed for name, allowed, _ in ROW.findall(PAGE)}
    assert {name: written.get(name) for name in TABLES} == {
        name: str(allowed) for name, allowed in TABLES.items()
    }
    others = [n for n, allowed in written.items() if re.match(r"(in|at least|more)\b", allowed)]
    assert not set(others) - TABLES.keys()


def test_every_key_and_every_default_is_written_down() -> None:
    assert not [key for key in configuration.MODELS if f"| `{key}` |" not in PAGE]
    section = PAGE[PAGE.index("### Colocation") : PAGE.index("### Thresholds")]
    defaults = {name: default for name, _, default in ROW.findall(section)}
    for name, value in strategy.DEFAULT.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert defaults[name] == f"{value}", name
