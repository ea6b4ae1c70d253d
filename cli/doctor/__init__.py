"""Reading a cluster or a host for `koord doctor`; the pure checks are in `checkup`."""
