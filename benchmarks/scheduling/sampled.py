"""Runs a program with a sampling profiler inside: where its processor time or its steps go.

python -m benchmarks.scheduling.sampled time|steps FILE MODULE [ARGUMENT ...]

Every few milliseconds of processor time, or every so many steps (opcodes) of the interpreter, the
stack of the main thread is noted. The file gets one line for each sample, root first, when the
program ends. Time that the kernel or an extension spends counts for the Python function that called
it; as steps it counts for nothing, but steps do not follow what else the machine does.
"""

import functools
import itertools
import os
import runpy
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

INTERVAL_SECONDS = 0.002
"""The kernel's own clock ticks bound this from below; samples are weighted alike all the same."""
INTERVAL_STEPS: Final = 499
"""A prime number, so that no loop is in step with it."""
_ROOT = f"{Path(__file__).parents[2]}{os.sep}"


class Stacks:
    """Stacks that were noted, each as code and line of its frames, innermost first."""

    def __init__(self) -> None:
        self._noted: list[tuple[tuple[CodeType, int], ...]] = []

    def note(self, frame: FrameType | None) -> None:
        """Note the stack of a frame."""
        stack = []
        while frame is not None:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        self._noted.append(tuple(stack))

    def lines(self) -> Iterable[str]:
        """Return each sample as `file:function:line;...`, root first."""
        for stack in self._noted:
            yield ";".join(itertools.starmap(_line, reversed(stack)))


class TimeSampler:
    """Notes stacks at even distances of processor time."""

    def __init__(self) -> None:
        self.stacks = Stacks()

    def start(self) -> None:
        """Begin; only in the main thread, where Python runs handlers of signals."""
        signal.signal(signal.SIGPROF, self._note)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_SECONDS, INTERVAL_SECONDS)

    def stop(self) -> None:
        """End."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _note(self, _number: int, frame: FrameType | None) -> None:
        self.stacks.note(frame)


class StepSampler:
    """Notes stacks at even distances of opcodes that this thread executes."""

    def __init__(self) -> None:
        self.stacks = Stacks()
        self._left = INTERVAL_STEPS

    def start(self) -> None:
        """Begin with the next function that is called."""
        sys.settrace(self._called)

    def stop(self) -> None:
        """End."""
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        del event
        # In this order: newer interpreters ask for opcodes of a frame that has its tracer alone.
        frame.f_trace = self._stepped
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self._left -= 1
            if not self._left:
                self._left = INTERVAL_STEPS
                self.stacks.note(frame)
        return self._stepped


SAMPLERS: Final = {"time": TimeSampler, "steps": StepSampler}


@functools.cache
def _line(code: CodeType, number: int) -> str:
    # A program that ends has few seconds, and its stacks have the same frames again and again.
    return f"{_place(code)}:{number}"


def _place(code: CodeType) -> str:
    name = code.co_filename.removeprefix(_ROOT)
    if name == code.co_filename and "site-packages" in name:
        name = name.rpartition("site-packages/")[2]
    return f"{name}:{code.co_qualname}"


def main(argv: list[str] | None = None) -> None:
    """Run a module as if it had been started itself."""
    way, target, module, *arguments = sys.argv[1:] if argv is None else argv
    sys.argv = [module, *arguments]
    sampler = SAMPLERS[way]()
    sampler.start()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        sampler.stop()
        Path(target).write_text("\n".join(sampler.stacks.lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
