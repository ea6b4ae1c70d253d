"""How a watch is ended for another one."""

import asyncio

from kube.informers import watch_progress


async def test_a_watch_that_is_closing_can_be_asked_to_end_again() -> None:
    """Its connection takes a moment to close, and others ask meanwhile."""
    stream = watch_progress.Stream()
    begun, closing, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def cycle() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            closing.set()
            await closed.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stream.run(cycle))
        await begun.wait()
        stream.reopen()
        stream.reopen()
        await closing.wait()
        stream.reopen()
        closed.set()
