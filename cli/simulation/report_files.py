"""The files of a simulation for people: one HTML page, or its charts as a PNG picture."""

import argparse
from pathlib import Path

from cli.output import png_charts, written_reports
from cli.simulation import ending
from cli.snapshot import reader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where a report and its charts are written to."""
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a report with charts, one HTML file"
    )
    parser.add_argument(
        "--png", type=Path, metavar="FILE",
        help="also write the charts as one picture (needs the extra koord[plots])",
    )  # fmt: skip


def check(chosen: argparse.Namespace) -> None:
    """Refuse a picture that cannot be drawn here, before anything is simulated."""
    if chosen.png is not None:
        try:
            png_charts.check()
        except png_charts.NoLibraryError as error:
            raise ending.ArgumentError(f"--png: {error}") from error


def write(chosen: argparse.Namespace, report: written_reports.Report) -> None:
    """Write the files that were asked for."""
    if chosen.html is not None:
        _write(chosen.html, written_reports.written(report, "html").encode())
    if chosen.png is not None:
        try:
            drawn = png_charts.drawn(report.drawings)
        except png_charts.TooLargeError as error:
            raise ending.ArgumentError(f"--png: {error}") from error
        _write(chosen.png, drawn)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise reader.FileError(f"{path} cannot be written: {error.strerror or error}") from error
