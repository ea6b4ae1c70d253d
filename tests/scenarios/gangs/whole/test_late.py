"""Members wait for each other before they are bound, no longer than their gang allows."""

SOON = {"waits": "1s"}


async def test_a_member_that_never_arrives_releases_the_others_after_the_waiting_time(gangs):
    await gangs.here.node("a")
    await gangs.gang("job", 3, 4, settings=SOON)
    # Nothing schedules this one, so that the others wait for it at Permit.
    await gangs.gang("job", 1, 4, first=3, settings=SOON, schedulerName="none")
    for number in range(3):
        await gangs.here.refused(f"job-{number}", "", "SchedulerError", timeout=30)
    await gangs.never("job")
    await gangs.here.remove("job-3")
    await gangs.gang("job", 1, 4, first=4, settings=SOON)
    await gangs.whole("job", 4)
