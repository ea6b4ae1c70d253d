import pytest


@pytest.fixture(autouse=True)
def _nothing_left():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""
