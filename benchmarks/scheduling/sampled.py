"""Runs a program with a sampling profiler inside: where its processor time goes.

python -m benchmarks.scheduling.sampled FILE MODULE [ARGUMENT ...]

Every few milliseconds of processor time the stack of the main thread is noted. The file gets one
line for each sample, root first, when the program ends. Time that the kernel or an extension spends
counts for the Python function that called it.
"""

import os
import runpy
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

INTERVAL_SECONDS = 0.002
"""The kernel's own clock ticks bound this from below; samples are weighted alike all the same."""
_ROOT = f"{Path(__file__).parents[2]}{os.sep}"


class Sampler:
    """Notes stacks at even distances of processor time."""

    def __init__(self) -> None:
        self._stacks: list[tuple[tuple[CodeType, int], ...]] = []

    def start(self) -> None:
        """Begin; only in the main thread, where Python runs handlers of signals."""
        signal.signal(signal.SIGPROF, self._note)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)

    def stop(self) -> None:
        """End."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _note(self, _number: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        self._stacks.append(tuple(stack))

    def lines(self) -> Iterable[str]:
        """Return each sample as `file:function:line;...`, root first."""
        for stack in self._stacks:
            yield ";".join(f"{_place(code)}:{line}" for code, line in reversed(stack))


def _place(code: CodeType) -> str:
    name = code.co_filename.removeprefix(_ROOT)
    if name == code.co_filename and "site-packages" in name:
        name = name.rpartition("site-packages/")[2]
    return f"{name}:{code.co_qualname}"


def main(argv: list[str] | None = None) -> None:
    """Run a module as if it had been started itself."""
    target, module, *arguments = sys.argv[1:] if argv is None else argv
    sys.argv = [module, *arguments]
    sampler = Sampler()
    sampler.start()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sampler.stop()
        Path(target).write_text("\n".join(sampler.lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
