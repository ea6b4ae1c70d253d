"""The console for people who see little or nothing, or have no mouse."""

import pytest

from tests.browser import test_console
from tests.planes.programs import axe, browser

FOCUS = """(() => { const one = document.activeElement;
  const style = getComputedStyle(one);
  return [one.tagName.toLowerCase(),
    one.ariaLabel || one.labels?.[0]?.childNodes[0].textContent || one.textContent.trim(),
    style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2] })()"""


@pytest.fixture(scope="session")
def rules():
    """The script that looks for faults."""
    found = axe.source()
    if found is None:
        pytest.skip("axe-core is not kept here and npm cannot get it")
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_no_page_has_a_fault_that_a_machine_can_find(tab, rules, dark):
    for width in (1280, 400):
        await tab.appear(dark=dark, still=True, width=width)
        for page in test_console.PAGES:
            await test_console.opened(tab, page)
            assert await axe.violations(tab, rules) == [], f"{page}, {width} pixels wide"


async def test_signing_in_has_none_either(world, opened, rules):
    async with opened() as console, browser.tab(browser.program()) as tab:
        await tab.go(f"{console.url}/")
        await tab.until("document.getElementById('token')")
        assert await axe.violations(tab, rules) == []
        assert not await tab.run("document.querySelector('main [role=alert]')")


async def walked(tab, steps):
    """What has the focus after each press of Tab."""
    found = []
    for _ in range(steps):
        await tab.press("Tab", 9)
        kind, name, seen = await tab.run(FOCUS)
        assert seen, f"the focus on {name!r} cannot be seen"
        found.append((kind, name))
    return found


async def test_tab_goes_from_the_pages_to_the_filters_to_the_nodes_to_the_table(tab):
    await tab.appear(still=True)
    found = await walked(tab, 16)
    assert found[0] == ("a", "Skip to content")
    assert found[1:9] == [("a", title) for title in (
        "Nodes", "Pending pods", "Quotas", "Devices", "Gangs", "Reservations", "Migrations",
        "Scorecard",
    )]  # fmt: skip
    assert [name for _, name in found[9:13]] == ["Colour by", "Name contains", "Zone", "Order"]
    # One stop for all nodes; arrow keys move among them.
    assert found[13][1].startswith("node-00: ")
    assert found[14:] == [("button", "Node"), ("button", "CPU")]


async def test_the_link_to_the_content_leads_past_the_pages(tab):
    await tab.press("Tab", 9)
    await tab.press("Enter", 13, "\r")
    assert await tab.run("document.activeElement.id") == "main"
    assert (await walked(tab, 1))[0][1] == "Colour by"


async def test_a_page_that_is_chosen_with_keys_is_announced(tab):
    await walked(tab, 3)
    await tab.press("Enter", 13, "\r")
    await tab.until("document.querySelector('main h1').textContent == 'Pending pods'")
    await tab.until("document.querySelector('#announce').innerText == 'Pending pods shown'")
    current = "document.querySelector('nav [aria-current=page]').textContent"
    assert await tab.run(current) == "Pending pods"


WIDE = "document.querySelector('main > :not(.away) .wide')"


async def test_a_table_that_is_too_wide_is_scrolled_with_keys(tab):
    await tab.appear(still=True, width=400)
    await test_console.opened(tab, "migrations")
    await tab.until(f"{WIDE}.tabIndex === 0")
    await tab.run(f"{WIDE}.focus()")
    said = await tab.run("document.activeElement.ariaLabel")
    assert said == "3 PodMigrationJobs: scrolls sideways"
    await tab.press("ArrowRight", 39)
    await tab.until(f"{WIDE}.scrollLeft > 0")
    # Whose figures these are is still seen, in a column that words fit into.
    head = await tab.run(f"{WIDE}.querySelector('tbody th').getBoundingClientRect().toJSON()")
    assert head["left"] >= 0
    assert head["width"] >= 100
    await tab.appear(still=True, width=1600)
    await tab.until(f"{WIDE}.tabIndex === -1")


async def test_a_fault_would_be_found(tab, rules):
    await tab.run("document.querySelector('.brand').style.color = '#ddd'")
    await tab.run("document.querySelector('main').append(document.createElement('button'))")
    found = " ".join(await axe.violations(tab, rules))
    assert "color-contrast: " in found
    assert "button-name: " in found
