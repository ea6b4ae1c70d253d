"""What tests learn from the pages of a process, above all where it does not answer."""

import contextlib
import math

import pytest
from aiohttp import web

from tests.planes.processes import processes

METRICS = """
koord_lease_leading 1
koord_rounds_total{result="planned",profile="a"} 2
koord_rounds_total{result="planned",profile="b"} 3
koord_rounds_total{result="failed",profile="a"} 1
"""


@pytest.fixture
def process(tmp_path):
    return processes.Process(tmp_path, "p", "manager", "http://127.0.0.1:1", b"", "t")


@contextlib.asynccontextmanager
async def serving(process, *answers):
    """Answer with these statuses and texts one after the other, and with the last one for good."""
    answers = [*answers]

    async def metrics(_request):
        status, text = answers.pop(0) if len(answers) > 1 else answers[0]
        return web.Response(status=status, text=text)

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", int(process.health_url.rpartition(":")[2])).start()
        yield
    finally:
        await runner.cleanup()


async def test_a_figure_is_summed_over_the_labels_that_are_not_given(process):
    async with serving(process, (200, METRICS)):
        assert await process.figure("koord_lease_leading") == 1
        assert await process.figure("koord_rounds_total") == 6
        assert await process.figure("koord_rounds_total", result="planned") == 5
        assert await process.figure("koord_other_total") == 0


async def test_who_does_not_answer_has_no_figure(process):
    assert math.isnan(await process.figure("koord_lease_leading"))
    async with serving(process, (500, "")):
        assert math.isnan(await process.figure("koord_lease_leading"))


async def test_who_is_too_busy_at_first_is_measured_later(process):
    async with serving(process, (503, ""), (503, ""), (200, METRICS)):
        assert await process.measured("koord_rounds_total", result="planned") == 5
