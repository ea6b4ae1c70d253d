"""python -m extender."""

from extender import app, settings
from kube.client import connect
from process.runtime import entry

if __name__ == "__main__":
    entry.main("extender", settings.Settings, app.running, connect=connect.connect)
