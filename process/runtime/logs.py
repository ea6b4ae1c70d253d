"""Logging set up once: one line per record on standard error, for people or for collectors."""

import datetime
import json
import logging
import sys
from typing import Any, Final, TextIO

from process.configuration import printable, settings

# A library at debug level writes headers, and with them tokens, into the log.
_NEVER_BELOW_INFO = ("aiohttp", "asyncio", "kubernetes_asyncio", "urllib3", "hpack", "grpc")
LONGEST_MESSAGE: Final = 8192
LONGEST_TRACEBACK: Final = 32_768
"""Characters of a record that are kept: what is logged may be of any length, as names in objects
are that no API server has checked yet."""
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+%,")


def configure(log: settings.LogSettings, stream: TextIO | None = None) -> None:
    """Send every record of this process to standard error, or to the given stream."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if log.format == "json" else TextFormatter())
    root = logging.getLogger()
    for former in tuple(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    level = logging.getLevelNamesMapping()[log.level.upper()]
    root.setLevel(level)
    for name in _NEVER_BELOW_INFO:
        logging.getLogger(name).setLevel(max(level, logging.INFO))
    logging.captureWarnings(True)


class TextFormatter(logging.Formatter):
    """Writes `time=… level=… logger=… msg="…"`, a traceback indented below it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of key=value, plus the lines of its traceback."""
        parts = [
            f"time={_time(record)}",
            f"level={record.levelname.lower()}",
            f"logger={record.name}",
            f"msg={_quote(_message(record))}",
        ]
        line = " ".join(parts)
        trace = _trace(self, record)
        return f"{line}\n{_indent(trace)}" if trace else line


class JsonFormatter(logging.Formatter):
    """Writes one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one JSON object, its traceback as one string."""
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _message(record),
        }
        trace = _trace(self, record)
        if trace:
            entry["traceback"] = trace
        line = json.dumps(entry, ensure_ascii=False)
        # What a terminal would obey becomes an escape, and with it whatever is not ASCII.
        return line if line.isprintable() else json.dumps(entry).replace("\x7f", "\\u007f")


def _time(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, tz=datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return _shortened("\n".join(parts), LONGEST_TRACEBACK)


def _message(record: logging.LogRecord) -> str:
    return _shortened(record.getMessage(), LONGEST_MESSAGE)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... {len(text) - most} characters more"


def _indent(text: str) -> str:
    return "\n".join(f"    {printable.escaped(line)}" for line in text.splitlines())


def _quote(text: str) -> str:
    """Quote what would otherwise break a line of key=value, so that no value can forge one."""
    if text and set(text) <= _SAFE:
        return text
    return printable.escaped(json.dumps(text, ensure_ascii=False))
