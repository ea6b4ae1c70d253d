"""The versions of the manual's site: their list, the alias `latest`, and pages that lead to it."""

import json
import pathlib
import re

import pytest
import yaml

from deploy.site import repository, versions

ROOT = pathlib.Path(__file__).parents[2]
LEADS = re.compile(r'location\.replace\("(.+?)"')


def built(site, *names, pages=("index.html", "tutorials/gang.html")):
    for name in names:
        for page in pages:
            place = site / name / page
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("<html>")


def listed(site):
    rows = json.loads((site / "versions.json").read_text())
    return {row["version"]: row["aliases"] for row in rows}


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        pytest.param(("1.2.0",), "1.2.0", id="the only one"),
        pytest.param(("1.9.0", "1.10.0", "1.2.0"), "1.10.0", id="numbers, not text"),
        pytest.param(("2.0.0rc1", "1.2.0"), "1.2.0", id="a release before a candidate"),
        pytest.param(("2.0.0rc1",), "2.0.0rc1", id="nothing is released yet"),
    ],
)
def test_latest_is_the_newest_release(tmp_path, names, newest):
    built(tmp_path, *names)
    assert versions.share(tmp_path) == newest
    found = listed(tmp_path)
    assert set(found) == set(names)
    assert [name for name, aliases in found.items() if "latest" in aliases] == [newest]


def test_versions_are_listed_from_the_newest_and_nothing_else_is(tmp_path):
    built(tmp_path, "1.9.0", "1.10.0", "charts")
    (tmp_path / "1.11.0").mkdir()
    versions.share(tmp_path)
    assert list(listed(tmp_path)) == ["1.10.0", "1.9.0"]


def test_every_page_of_the_alias_leads_to_the_page_of_the_version(tmp_path):
    built(tmp_path, "1.0.0", pages=("index.html", "gone.html"))
    versions.share(tmp_path)
    built(tmp_path, "1.1.0")
    versions.share(tmp_path)
    pages = [tmp_path / "index.html", *(tmp_path / "latest").rglob("*.html")]
    assert len(pages) == 3
    for page in pages:
        (link,) = LEADS.findall(page.read_text())
        assert f'content="0; url={link}"' in page.read_text()
        target = (page.parent / link).resolve()
        assert target.is_file()
        assert target.relative_to(tmp_path).parts[0] == "1.1.0"
        assert page.name == target.name


def test_a_folder_without_versions_is_told(tmp_path):
    with pytest.raises(versions.NoVersionError, match=r"no folder of a version, such as 1\.0\.0"):
        versions.share(tmp_path)


def test_the_theme_reads_the_list_and_knows_the_alias():
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert settings["extra"]["version"]["provider"] == "mike"
    assert settings["extra"]["version"]["default"] == versions.LATEST
    assert (ROOT / settings["theme"]["custom_dir"] / "main.html").is_file()


def test_pages_carry_the_meaning_of_names_and_not_of_common_words():
    found = dict(re.findall(r"^\*\[(.+?)\]: (.+)$", repository.meanings(), re.M))
    assert found["NRI"].startswith("the interface by which a plug-in")
    assert {"NodeSLO", "PCIe", "BE"} <= set(found)
    assert not {"CPU", "tick", "stand-in"} & set(found)
