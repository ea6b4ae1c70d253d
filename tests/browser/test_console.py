"""The console in a browser: what is painted, what keys do, what screen readers announce."""

import pytest

from tests.browser import scene
from tests.manager.console import conftest as consoles
from tests.planes.programs import browser

PAGES = ("nodes", "nodes/node-05", "pending", "quotas", "devices", "gangs", "reservations",
         "migrations", "scorecard")  # fmt: skip
TITLES = {
    "nodes": "Nodes", "nodes/node-05": "Node node-05", "pending": "Pending pods",
    "quotas": "Elastic quotas", "devices": "Devices and topology", "gangs": "Gangs",
    "reservations": "Reservations", "migrations": "Migrations", "scorecard": "Scorecard",
}  # fmt: skip
HEADING = "document.querySelector('main h1')?.textContent"
FOCUSED = "document.activeElement"
CHECKS = """(() => {
  const wrong = [];
  const named = (element) => element.textContent.trim() || element.getAttribute('aria-label')
    || element.getAttribute('title') || element.labels?.[0]?.textContent;
  for (const one of document.querySelectorAll('a, button, input, select, textarea'))
    if (!named(one)) wrong.push('no name: ' + one.outerHTML.slice(0, 120));
  for (const one of document.querySelectorAll('table'))
    if (!one.caption?.textContent.trim()) wrong.push('no caption: ' + one.outerHTML.slice(0, 120));
  for (const one of document.querySelectorAll('img'))
    if (!one.hasAttribute('alt')) wrong.push('no alt: ' + one.outerHTML.slice(0, 120));
  for (const role of ['header', 'nav', 'main'])
    if (document.querySelectorAll(role).length !== 1) wrong.push('landmark ' + role);
  if (document.querySelectorAll('main > :not(.away) h1').length !== 1) wrong.push('headings');
  if (document.documentElement.lang !== 'en') wrong.push('language');
  const seen = [...document.querySelectorAll('[id]')].map((one) => one.id);
  if (new Set(seen).size !== seen.length) wrong.push('ids ' + seen);
  if (document.body.scrollWidth > innerWidth) wrong.push('wider than the window');
  return wrong;
})()"""


async def opened(tab, page):
    await tab.run(f"location.hash = '#/{page}'")
    await tab.until(f"{HEADING} === '{TITLES[page]}' && !document.querySelector('main .loading')")
    await tab.until("!document.body.innerText.includes('Loading …')")


async def test_every_page_is_shown_and_a_picture_is_taken(tab, pictures):
    for page in PAGES:
        await opened(tab, page)
        assert await tab.run(CHECKS) == [], page
        for dark in (False, True):
            await tab.appear(dark=dark, still=True)
            name = page.replace("/", "-") + ("-dark" if dark else "")
            if dark and page not in ("nodes", "nodes/node-05"):
                continue
            await tab.picture(pictures / f"{name}.png")
    files = [file for file in pictures.iterdir() if file.suffix == ".png"]
    assert len(files) == len(PAGES) + 2


async def test_what_tenants_wrote_stays_text(shown, tab):
    pod = consoles.pod("hostile")
    pod["metadata"]["annotations"] = {}
    evil = "<img src=x onerror=document.title='stolen'><script>document.title='stolen'</script>"
    world = shown.world
    await scene.create(world, scene.resources.PODS, pod, "team-a")
    await scene._refused(world, "hostile", "team-a", evil)
    await world.quiet()
    await opened(tab, "pending")
    await tab.until("document.querySelector('main').innerText.includes('onerror')")
    assert await tab.run("document.querySelectorAll('main img, main script').length") == 0
    assert "stolen" not in await tab.run("document.title")


async def test_the_heat_map_is_walked_with_keys(tab):
    assert await tab.run("document.querySelectorAll('.heat [tabindex=\"0\"]').length") == 1
    await tab.run("document.querySelector('.heat [tabindex=\"0\"]').focus()")
    await tab.press("ArrowRight", 39)
    assert "node-01" in await tab.run(f"{FOCUSED}.ariaLabel")
    await tab.press("ArrowDown", 40)
    columns = await tab.run(
        "getComputedStyle(document.querySelector('.heat')).gridTemplateColumns.split(' ').length"
    )
    assert scene.name(1 + columns) in await tab.run(f"{FOCUSED}.ariaLabel")
    await tab.press("End", 35)
    assert scene.name(scene.NODES - 1) in await tab.run(f"{FOCUSED}.ariaLabel")
    assert await tab.run("document.querySelectorAll('.heat [tabindex=\"0\"]').length") == 1
    await tab.press("Home", 36)
    await tab.press("Enter", 13, "\r")
    await tab.until(f"{HEADING} === 'Node node-00'")
    roles = await tab.spoken()
    assert ("heading", "What it lends, and why") in roles


async def test_nodes_that_are_put_away_are_neither_heard_nor_reached(tab):
    await tab.until("document.querySelectorAll('.heat > div').length")
    await opened(tab, "quotas")
    assert not [name for role, name in await tab.spoken() if role == "option"]
    await tab.run("document.querySelector('.heat [tabindex=\"0\"]').focus()")
    assert await tab.run(f"!{FOCUSED}.closest('.heat')")
    assert await tab.run("document.querySelector('.away').getBoundingClientRect().height") == 0
    await opened(tab, "nodes")
    assert [name for role, name in await tab.spoken() if role == "option"]
    assert await tab.run("document.querySelectorAll('.away').length") == 0


async def test_screen_readers_hear_every_node(tab):
    await tab.until("[...document.querySelectorAll('.heat > div')].every((one) => one.ariaLabel)")
    heard = [name for role, name in await tab.spoken() if role == "option"]
    nodes = [name for name in heard if name.startswith("node-")]
    assert len(nodes) == scene.NODES
    assert "% of the CPU is in use" in nodes[0]
    assert "not known" in nodes[11]


CHANGE = """(() => { const one = document.querySelectorAll('.tools %s')[%d];
  one.value = '%s'; one.dispatchEvent(new Event('%s', {bubbles: true})) })()"""


async def test_filters_change_what_is_shown_and_say_so(tab):
    filters = ((("input", 0, "node-1", "input"), 10), (("select", 1, "zone-a", "change"), 3))
    for changed, expected in filters:
        await tab.run(CHANGE % changed)
        await tab.until(f"document.querySelectorAll('.heat > div').length === {expected}")
        said = await tab.run("document.getElementById('announce').textContent")
        assert said == f"{expected} nodes"


async def test_a_token_is_asked_for_and_kept_nowhere(world, opened, rights):
    await world.node("n1")
    async with opened() as console, browser.tab(browser.program()) as tab:
        await tab.go(f"{console.url}/")
        await tab.until("document.getElementById('token')")
        assert await tab.run(f"{FOCUSED}.id") == "token"
        enter = (
            "(() => { const one = document.getElementById('token'); one.value = '%s';"
            " one.form.requestSubmit() })()"
        )
        await tab.run(enter % "expired")
        await tab.until(
            "document.querySelector('main [role=alert]')?.textContent.includes('accept')"
        )
        await tab.run(enter % consoles.ADMIN)
        await tab.until(f"{HEADING} === 'Nodes'")
        kept = "[localStorage.length, sessionStorage.length, document.cookie, location.href]"
        found = await tab.run(f"JSON.stringify({kept})")
        assert found.startswith('[0,0,"",')
        assert consoles.ADMIN not in found
        await tab.go("about:blank")
        await tab.go(f"{console.url}/")
        await tab.until("document.getElementById('token')")
        # The browser itself reports the answers with 401.
        assert all("401" in one for one in tab.said)
        assert not any(consoles.ADMIN in one for one in tab.requests)


async def test_a_console_that_goes_away_is_said_and_what_was_shown_stays(tab, shown):
    await shown.world.clock.advance(1.0)
    await tab.call("Network.emulateNetworkConditions", offline=True, latency=0,
                   downloadThroughput=0, uploadThroughput=0)  # fmt: skip
    await tab.until("!document.getElementById('trouble').hidden")
    assert await tab.run(HEADING) == "Nodes"
    await tab.call("Network.emulateNetworkConditions", offline=False, latency=0,
                   downloadThroughput=-1, uploadThroughput=-1)  # fmt: skip
    await tab.until("document.getElementById('trouble').hidden")
    tab.said.clear()


async def test_a_page_that_may_not_be_seen_says_what_is_missing(world, opened, rights):
    rights.grant(consoles.VIEWER, scene.resources.NODES)
    await world.node("n1")
    async with opened(viewer=consoles.VIEWER) as console, browser.tab(browser.program()) as tab:
        await tab.go(f"{console.url}/")
        await tab.until(f"{HEADING} === 'Nodes'")
        assert "You may not list NodeMetrics" in await tab.run("document.body.innerText")
        await tab.run("location.hash = '#/migrations'")
        await tab.until(f"{HEADING} === 'This page cannot be shown'")
        said = await tab.run("document.querySelector('main').innerText")
        assert "may not list podmigrationjobs" in said


WIDE = """[...document.querySelectorAll('body *')].filter((one) =>
  one.getBoundingClientRect().right > innerWidth + 0.5 && !one.closest('.wide, .unseen, .skip'))
  .map((one) => one.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("width", [360, 1920])
async def test_windows_of_any_width_need_no_sideways_scrolling(tab, width):
    await tab.appear(still=True, width=width)
    for page in ("nodes", "pending", "scorecard"):
        await opened(tab, page)
        assert await tab.run(WIDE) == [], page
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth"), page
