"""Checks many cases, in several processes, and says how often the preview was right."""

import asyncio
import dataclasses
import logging
import multiprocessing
import pathlib
import tempfile

from tests.preview import cases, real, virtual_time
from tests.system import world as worlds

PER_WORLD = 50
LEAST_SHARE = 0.99
"""How often what is said has to be what happens."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A case in which something else happened."""

    seed: int
    text: str
    why: str = ""
    """Empty where that is not known, which is a failure."""

    def __str__(self):
        return f"seed {self.seed}: {self.text}; {self.why or 'NOT EXPLAINED'}"


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """What came out of so many cases."""

    count: int
    eventful: int
    """In how many of them anything started or was evicted."""
    differences: tuple[Difference, ...] = ()

    def __add__(self, other):
        return Summary(
            self.count + other.count,
            self.eventful + other.eventful,
            (*self.differences, *other.differences),
        )

    @property
    def share(self):
        return 1 - len(self.differences) / self.count

    @property
    def passes(self):
        """Whether it was right often enough, and every difference is explained."""
        return self.share >= LEAST_SHARE and all(one.why for one in self.differences)

    def __str__(self):
        said = (
            f"{self.count} cases, in {self.eventful} of them something happened; "
            f"{self.share:.2%} as it was said"
        )
        return "\n".join([said, *map(str, self.differences)])


def checked(seeds):
    """Check some cases in one world of their own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=virtual_time.Loop) as runner,
    ):
        return runner.run(_checked(pathlib.Path(folder), seeds))


async def _checked(folder, seeds):
    eventful, found = 0, []
    async with worlds.opened(folder, virtual_time.World) as world:
        await real.prepare(world)
        for seed in seeds:
            case = cases.case(seed)
            result = await real.run(world, case)
            eventful += result.eventful
            if not result.equal:
                text = f"{' '.join(case.flags)}: {result.difference()}"
                found.append(Difference(seed, text, result.why))
            await real.clear(world, case)
    return Summary(len(seeds), eventful, tuple(found))


def _quiet():
    # Watches that end with their world are no news. Only in processes of our own: a level that a
    # test left behind would hide what others look for.
    logging.getLogger().setLevel(logging.CRITICAL)


def run(first, count, processes, tell):
    """Check cases in several processes; `tell` hears how far it is."""
    seeds = range(first, first + count)
    parts = [seeds[at : at + PER_WORLD] for at in range(0, count, PER_WORLD)]
    total = Summary(0, 0)
    with multiprocessing.get_context("spawn").Pool(processes, _quiet) as pool:
        for part in pool.imap_unordered(checked, parts):
            total += part
            tell(f"{total.count} of {count} cases, {len(total.differences)} differ")
            for one in part.differences:
                tell(str(one))
    ordered = sorted(total.differences, key=lambda one: one.seed)
    return dataclasses.replace(total, differences=tuple(ordered))
