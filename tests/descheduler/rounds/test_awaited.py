from descheduler.rounds import awaited
from tests.descheduler import builders


def test_a_created_job_counts_until_the_watch_shows_it():
    waits, job = awaited.Awaited(), builders.job("new", "web-0")
    waits.add(job, 100.0)
    other = {"old": builders.job("old", "web-1")}
    assert waits.joined(other, 101.0) == {**other, "new": job}
    shown = {**other, "new": builders.job("new", "web-0", phase="Running")}
    assert waits.joined(shown, 102.0) is shown
    # It has been shown once, so it is gone when it is not shown any more.
    assert waits.joined(other, 103.0) is other


def test_a_job_that_is_never_shown_is_forgotten():
    waits = awaited.Awaited()
    waits.add(builders.job("new"), 100.0)
    assert waits.joined({}, 159.0) != {}
    assert waits.joined({}, 160.0) == {}
