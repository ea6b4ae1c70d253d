"""Somebody holds a Lease as long as it is renewed; no wall clock of others is trusted."""

from kube.informers import store
from process.runtime import clock as clocks
from webhook.informers import lease_holder


def renewal(number, holder="m", seconds=15.0):
    return lease_holder.Renewal(holder, f"t{number}", seconds)


async def test_a_lease_is_held_as_long_as_it_is_renewed():
    clock = clocks.ManualClock()
    held = lease_holder.LeaseHolder(clock)
    assert not held.is_there
    held.take(store.Change("k", None, renewal(1)))
    assert not held.is_there, "the lease may be one that nobody renews any more"
    held.take(store.Change("k", renewal(1), renewal(2)))
    assert held.is_there
    await clock.advance(29.0)
    assert held.is_there, "a new holder takes over within this time"
    await clock.advance(2.0)
    assert not held.is_there
    held.take(store.Change("k", renewal(2), renewal(3)))
    assert held.is_there
    held.take(store.Change("k", renewal(3), renewal(4, holder="")))
    assert not held.is_there, "the holder has stepped down, and nobody has followed"
    held.take(store.Change("k", renewal(4, holder=""), renewal(5)))
    assert held.is_there
    held.take(store.Change("k", renewal(5), None))
    assert not held.is_there
