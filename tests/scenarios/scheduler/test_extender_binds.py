"""What becomes of a pod between the choice of its node and the answer of bind."""

import asyncio

from tests.planes.scheduler import scripted


async def test_a_bind_that_is_held_too_long_is_given_up_and_tried_again(here, extender):
    await here.plane.start_scheduler(extender.url, bind_timeout_seconds=1)
    await here.node("a")
    left = []

    async def hold_once(body):
        if len(extender.of("bind", "web")) > 1:
            return await extender.write_binding(body)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            left.append(body["PodName"])
            raise
        return {}

    extender.bind = hold_once
    await here.pod("web")
    await here.bound("web")
    # Who holds a bind hears that the scheduler has hung up.
    assert left == ["web"]


async def test_each_entry_has_its_own_patience(here, extender):
    await here.plane.start_scheduler(
        extender.url, filter_timeout_seconds=1, bind_timeout_seconds=20
    )
    await here.node("a")
    gathered = asyncio.Event()

    async def together(body):
        if len({call.pod for call in extender.of("bind")}) == 3:
            gathered.set()
        # Longer than a filter call may take.
        await asyncio.sleep(1.5)
        await gathered.wait()
        return await extender.write_binding(body)

    extender.bind = together
    for name in ("one", "two"):
        await here.pod(name)
        await extender.called("bind", name)
    await here.pod("three")
    for name in ("one", "two", "three"):
        await here.bound(name)
        assert len(extender.of("bind", name)) == 1


async def test_capacity_of_a_failed_bind_is_free_again(here, extender):
    await here.node("a", cpu="2")

    async def never_web(body):
        if body["PodName"] == "web":
            return {"Error": "the device is gone"}
        return await extender.write_binding(body)

    extender.bind = never_web
    await here.pod("web", requests={"cpu": "2"})
    await here.refused("web", "the device is gone", reason="SchedulerError")
    await here.pod("other", requests={"cpu": "2"})
    await here.bound("other")


async def test_annotations_of_a_binding_win_over_those_of_the_pod(here, extender):
    await here.node("a")
    extender.annotations = {"koord.sh/placement": "new"}
    await here.pod("web", annotations={"koord.sh/placement": "old"})
    pod = await here.bound("web")
    assert pod["metadata"]["annotations"]["koord.sh/placement"] == "new"


async def test_labels_of_a_binding_depend_on_the_release(here, extender):
    await here.node("a")
    extender.labels = {"koord.sh/new": "binding", "koord.sh/old": "binding"}
    await here.pod("web", labels={"koord.sh/old": "pod"})
    pod = await here.bound("web")
    copied = extender.labels if here.plane.release >= (1, 35) else {"koord.sh/old": "pod"}
    assert pod["metadata"]["labels"] == copied


async def test_a_connection_that_idled_too_long_costs_nothing(here):
    async with scripted.listening(here.api, keepalive_seconds=0.2) as extender:
        await here.plane.start_scheduler(extender.url)
        try:
            await here.node("a")
            await here.pod("before")
            await here.bound("before")
            await extender.idle()
            await here.pod("after")
            await here.bound("after")
            (first, *_), (second, *_) = (extender.of("filter", n) for n in ("before", "after"))
            assert first.connection != second.connection
            assert len(extender.of("filter", "after")) == 1
        finally:
            await here.plane.stop_scheduler()


async def test_a_connection_is_kept_between_calls(here, extender):
    await here.node("a")
    for name in ("one", "two", "three"):
        await here.pod(name)
        # The pod has its node before the scheduler has read the answer to its bind call.
        await here.told(name, "Scheduled")
    assert len({call.connection for call in extender.of("filter")}) == 1


async def test_the_most_important_pod_comes_first(here, extender):
    await here.node("a")
    await here.plane.stop_scheduler()
    async with here.priority(1000) as high:
        await here.pod("low")
        await here.pod("very-high", priorityClassName=high)
        await here.plane.start_scheduler(extender.url, filter_timeout_seconds=30)
        await here.bound("low")
        await here.bound("very-high")
    assert [call.pod for call in extender.of("filter")] == ["very-high", "low"]


async def test_of_equals_the_one_that_waits_longer_comes_first(here, extender):
    await here.node("a")
    busy = asyncio.Event()

    async def wait(body):
        await busy.wait()
        return await extender.accept(body)

    extender.filter = wait
    await here.pod("blocks")
    await extender.called("filter", "blocks")
    # Both arrive while the only loop is busy with another pod.
    async with here.api.watch(here.path("pods")) as stream:
        for name in ("z-first", "a-second"):
            await here.pod(name)
            await stream.until(lambda event, name=name: event["object"]["metadata"]["name"] == name)
    busy.set()
    for name in ("z-first", "a-second"):
        await here.bound(name)
    assert [call.pod for call in extender.of("filter")] == ["blocks", "z-first", "a-second"]
