"""Compiles every module on all processors, while one of them collects the tests.

In a fresh clone the process that collects would otherwise compile all and rewrite the assertions of
all tests by itself, on one processor. Whoever comes to a module first compiles it for both.
"""

import compileall
import contextlib
import multiprocessing
import types
from collections.abc import Iterator
from pathlib import Path

from _pytest.assertion import rewrite

ROOT = Path(__file__).parent.parent.parent


def main() -> None:
    """Compile what has changed since it was compiled last, on all processors."""
    with multiprocessing.Pool() as pool:
        pool.map(compiled, sorted(_modules()), chunksize=16)


def _modules() -> Iterator[Path]:
    for folder in ROOT.iterdir():
        if folder.is_dir() and not folder.name.startswith("."):
            yield from folder.rglob("*.py")


def compiled(file: Path) -> None:
    """Compile one module as whoever imports it would; pytest itself does so with tests."""
    if not file.name.startswith("test_") and file.name != "conftest.py":
        compileall.compile_file(file, quiet=2)
        return
    pyc = written(file)
    if rewrite._read_pyc(file, pyc) is not None or not rewrite.try_makedirs(pyc.parent):
        return
    # Whoever imports it tells what is wrong with it.
    with contextlib.suppress(SyntaxError):
        found, code = rewrite._rewrite_test(file, None)
        rewrite._write_pyc(types.SimpleNamespace(trace=print), code, found, pyc)


def written(file: Path) -> Path:
    """Return where pytest looks for the compiled form of a test."""
    return rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"


if __name__ == "__main__":
    main()
