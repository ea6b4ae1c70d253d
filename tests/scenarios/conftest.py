import pytest


@pytest.fixture(autouse=True)
def _no_leaks():
    """The control plane is shared by many tests, so its sockets and tasks outlive each of them."""
