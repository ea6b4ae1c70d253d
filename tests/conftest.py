pytest_plugins = ["tests.planes.plugin"]
