"""The files of a report for people: one HTML page, or its charts as a PNG picture."""

import argparse
from pathlib import Path

from cli.output import png_charts, written_reports
from process.configuration import explained_error


class PictureError(explained_error.ExplainedError):
    """A picture that cannot be drawn; says what to install or to write instead."""


class FileError(explained_error.ExplainedError):
    """A file that cannot be written; names it and the reason."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where a report and its charts are written to."""
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a report with charts, one HTML file"
    )
    add_picture(parser)


def add_picture(parser: argparse.ArgumentParser) -> None:
    """Declare where the charts of a report are written to."""
    parser.add_argument(
        "--png", type=Path, metavar="FILE",
        help="also write the charts as one picture (needs the extra koord[plots])",
    )  # fmt: skip


def check(chosen: argparse.Namespace) -> None:
    """Refuse a picture that cannot be drawn here, before anything is read."""
    if chosen.png is not None:
        try:
            png_charts.check()
        except png_charts.NoLibraryError as error:
            raise PictureError(f"--png: {error}") from error


def write(chosen: argparse.Namespace, report: written_reports.Report) -> None:
    """Write the files that were asked for."""
    if chosen.html is not None:
        written(chosen.html, written_reports.written(report, "html").encode())
    write_picture(chosen, report)


def write_picture(chosen: argparse.Namespace, report: written_reports.Report) -> None:
    """Write the charts where that was asked for."""
    if chosen.png is not None:
        if not report.drawings:
            raise PictureError("--png: this report has no charts, since no team has any figures")
        try:
            drawn = png_charts.drawn(report.drawings)
        except png_charts.TooLargeError as error:
            raise PictureError(f"--png: {error}") from error
        written(chosen.png, drawn)


def written(path: Path, data: bytes) -> None:
    """Write a file."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error
