"""python -m descheduler."""

from descheduler import app, settings
from kube.client import connect
from process.runtime import entry

if __name__ == "__main__":
    entry.main("descheduler", settings.Settings, app.running, connect=connect.connect)
