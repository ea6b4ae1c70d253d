"""One record is one line that nobody can forge, in UTC, with its traceback."""

import io
import json
import logging
import re
import warnings
from collections.abc import Iterator

import pytest

from process.configuration.settings import LogSettings
from process.runtime import logs


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(False)
    for handler in list(root.handlers):
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


def configured(**chosen: str) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(LogSettings.model_validate(chosen), stream)
    return stream


def test_text_lines_are_key_value() -> None:
    stream = configured()
    logging.getLogger("extender.verbs.bind").info("bound pod=%s node=%s", "default/a", "n1")
    line = stream.getvalue()
    assert re.fullmatch(
        r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=info logger=extender\.verbs\.bind"
        r' msg="bound pod=default/a node=n1"\n',
        line,
    )


def test_json_lines_are_objects_with_the_traceback_inside() -> None:
    stream = configured(format="json")
    try:
        raise ValueError("no such cgroup")
    except ValueError:
        logging.getLogger("agent").exception("tick failed")
    entry = json.loads(stream.getvalue())
    assert entry["level"] == "error"
    assert entry["msg"] == "tick failed"
    assert entry["traceback"].endswith("ValueError: no such cgroup")
    assert entry["time"].endswith("Z")


def test_hostile_text_cannot_make_a_second_line() -> None:
    stream = configured()
    logging.getLogger("x").info("name=%s", 'a"\ntime=2000 level=error')
    assert stream.getvalue().count("\n") == 1
    assert r"\"\ntime=2000" in stream.getvalue()


def test_traceback_is_indented_below_its_line() -> None:
    stream = configured()
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("x").exception("failed")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("msg=failed")
    assert rest
    assert all(line.startswith("    ") for line in rest)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param("debug", ["d", "i", "w", "e"], id="debug"),
        pytest.param("info", ["i", "w", "e"], id="info"),
        pytest.param("warning", ["w", "e"], id="warning"),
        pytest.param("error", ["e"], id="error"),
    ],
)
def test_level_filters(level: str, expected: list[str]) -> None:
    stream = configured(level=level, format="json")
    logger = logging.getLogger("koord.test")
    for method, text in ((10, "d"), (20, "i"), (30, "w"), (40, "e")):
        logger.log(method, text)
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == expected


def test_libraries_that_log_tokens_stay_quiet_at_debug() -> None:
    stream = configured(level="debug")
    logging.getLogger("kubernetes_asyncio.client.rest").debug("Authorization: Bearer secret")
    assert stream.getvalue() == ""


def test_configuring_again_replaces_and_python_warnings_are_records() -> None:
    first = configured()
    second = configured()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old API", UserWarning, stacklevel=1)
    logging.getLogger("x").info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("msg=once") == 1
    assert "old API" in second.getvalue()


HOSTILE = "\U000e0041\xad\x1b[2J\x9b31m\u202egnirts\u200b\x7f\u2028level=info\x85\n{}"


@pytest.mark.parametrize("shape", ["text", "json"])
def test_no_character_of_a_record_is_obeyed_by_a_terminal(shape: str) -> None:
    stream = configured(format=shape)
    log = logging.getLogger("extender")
    log.warning("refused: %s Grüße", HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("failed")
    told = stream.getvalue()
    assert all(char.isprintable() or char == "\n" for char in told)
    assert "Grüße" in told or shape == "json"
    if shape == "json":
        first, second = map(json.loads, told.splitlines())
        assert first["msg"] == f"refused: {HOSTILE} Grüße", "a program reads what was written"
        assert HOSTILE in second["traceback"]


@pytest.mark.parametrize("shape", ["text", "json"])
def test_no_record_is_longer_than_a_page_of_text(shape: str) -> None:
    """Names in an object that is not admitted yet may have megabytes."""
    stream = configured(format=shape)
    log, long = logging.getLogger("webhook"), "\u202e" * 1_000_000
    log.info("refused object=%s reason=%s", long, "no")
    try:
        raise ValueError(long)
    except ValueError:
        log.exception("review failed")
    first, *_ = told = stream.getvalue().splitlines()
    assert "refused object=" in first
    assert "characters more" in first
    assert "review failed" in stream.getvalue()
    assert max(map(len, told)) < 10 * (logs.LONGEST_MESSAGE + logs.LONGEST_TRACEBACK)
