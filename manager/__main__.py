"""python -m manager."""

from kube.client import connect
from manager import app, settings
from process.runtime import entry

if __name__ == "__main__":
    entry.main("manager", settings.Settings, app.running, connect=connect.connect)
