"""examples/: every file is short, commented and in the table; the descheduler reads its part."""

import pathlib
import re

import yaml

from descheduler.configuration import document

FOLDER = pathlib.Path(__file__).parents[2] / "examples"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))


def objects(name):
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text()) if one]


def test_every_file_is_in_the_table_and_is_short():
    table = re.findall(r"^\| \[(\S+)\]\((\S+)\)", (FOLDER / "README.md").read_text(), re.M)
    assert sorted(name for name, link in table if name == link) == FILES
    for name in FILES:
        assert (FOLDER / name).read_text().startswith("#"), name
        assert len((FOLDER / name).read_text().splitlines()) <= 120, name


def test_the_configuration_of_the_descheduler_is_read_without_a_warning():
    (settings,) = objects("descheduler.yaml")
    reading = document.read(settings["data"]["koord-descheduler-config"])
    assert (reading.faults, reading.warnings) == ((), ())
