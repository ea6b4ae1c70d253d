import { get, Refused, signIn, signedIn } from "./api.js";
import { announce, h, replace } from "./dom.js";
import { devices, gangs, migrations, pending, Quotas, reservations, Scorecard } from "./lists.js";
import { Node, Nodes } from "./nodes.js";

const PAGES = [
  ["nodes", "Nodes", () => new Nodes()],
  ["pending", "Pending pods", pending],
  ["quotas", "Quotas", () => new Quotas()],
  ["devices", "Devices", devices],
  ["gangs", "Gangs", gangs],
  ["reservations", "Reservations", reservations],
  ["migrations", "Migrations", migrations],
  ["scorecard", "Scorecard", () => new Scorecard()],
];
const DETAILS = { nodes: (name) => new Node(name) };
const EVERY_MILLISECONDS = 5000;

const main = document.getElementById("main");
const kept = new Map();
let session = null;
let page = null;
let turn = 0;
let opening = true;

function where() {
  const [, name = "", detail = ""] = location.hash.split("/");
  const found = PAGES.find(([key]) => key === name) ?? PAGES[0];
  let written = "";
  try { written = decodeURIComponent(detail); } catch { /* a broken address shows the whole page */ }
  return { name: found[0], detail: written };
}

async function show() {
  const here = where();
  const mine = (turn += 1);
  drawPages(here.name);
  const made = open(here);
  page = made;
  document.title = `${made.title} – Koord console`;
  // A page that was shown before is there at once, and then brought up to date.
  const again = made.wasShown;
  if (again) enterPage(made);
  try {
    await made.load();
  } catch (error) {
    if (mine !== turn) return;
    if (refused(error)) return;
  }
  if (mine !== turn || page !== made || again) return;
  enterPage(made);
}

function enterPage(made) {
  const moved = !isShown(made.element);
  for (const one of [...main.children]) {
    if (one !== made.element && !one.stays) one.remove();
    else if (one !== made.element) putAway(one, true);
  }
  // Before the page that stays, so that the heading of what is shown comes first.
  if (made.element.parentNode !== main) main.prepend(made.element);
  putAway(made.element, false);
  made.wasShown = true;
  window.scrollTo(0, 0);
  // Whoever opens the console starts at its top, whoever chose a page at that page.
  if (moved && !opening && document.activeElement === document.body) main.focus({ preventScroll: true });
  opening = false;
  announce(`${made.title} shown`);
}

const isShown = (element) => element.parentNode === main && !element.inert;

// What is put away keeps its layout: to lay thousands of cells out anew is what takes long.
function putAway(element, away) {
  element.inert = away;
  element.classList.toggle("away", away);
}

function open({ name, detail }) {
  if (detail && DETAILS[name]) return DETAILS[name](detail);
  if (!kept.has(name)) kept.set(name, PAGES.find(([key]) => key === name)[2]());
  return kept.get(name);
}

// Return whether the error has taken the page's place.
function refused(error) {
  if (!(error instanceof Refused)) { console.error(error); }
  if (error.status === 401) { ask(signedIn() ? error : null); return true; }
  const remedy = error.remedy ? h("p", {}, error.remedy) : null;
  replace(main, h("section", { class: "panel", role: "alert" }, h("h1", {}, "This page cannot be shown"), h("p", {}, String(error.message)), remedy));
  page = null;
  return true;
}

function trouble(error) {
  const place = document.getElementById("trouble");
  place.hidden = error === null;
  const text = error === null ? "" : `Not up to date: ${error.message}${error.remedy ? `: ${error.remedy}` : ""}`;
  if (place.textContent !== text) place.textContent = text;
}

function drawPages(current) {
  const pages = document.getElementById("pages");
  pages.parentElement.hidden = !session;
  replace(pages, PAGES.map(([key, title]) => {
    const lacks = session?.pages?.[key] ?? [];
    return h("li", {}, h("a", { href: `#/${key}`, "aria-current": key === current ? "page" : null,
      class: lacks.length ? "barred" : null, title: lacks.length ? `You may not ${lacks.join(", ")}` : null }, title));
  }));
  document.getElementById("user").textContent = session ? session.user : "";
  document.getElementById("leave").hidden = !signedIn();
}

function ask(error) {
  session = null;
  opening = false;
  page = null;
  kept.clear();
  turn += 1;
  drawPages("");
  const written = h("textarea", { id: "token", name: "token", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "token-help" });
  const form = h("form", { class: "panel signin", onsubmit: (event) => { event.preventDefault(); enter(written.value); } },
    h("h1", {}, "Sign in"),
    error ? h("p", { class: "bad", role: "alert" }, `${error.message}${error.remedy ? `: ${error.remedy}` : ""}`) : null,
    h("p", {}, h("label", { for: "token" }, "Bearer token of a user or ServiceAccount")), written,
    h("p", { class: "soft", id: "token-help" }, "You see what this token may list. It stays in the memory of this page: a reload forgets it. ",
      "A ServiceAccount's token comes from ", h("code", {}, "kubectl create token NAME"), ". ",
      h("code", {}, "kubectl proxy"), " drops tokens; ", h("code", {}, "kubectl port-forward"), " passes them on."),
    h("p", {}, h("button", { class: "main", type: "submit" }, "Sign in")));
  replace(main, form);
  document.title = "Sign in – Koord console";
  written.focus();
}

async function enter(written) {
  signIn(written);
  try {
    session = (await get("session")).body;
  } catch (error) {
    if (error.status === 401) { const tried = signedIn(); signIn(""); ask(tried ? error : null); return; }
    refused(error);
    return;
  }
  await show();
}

async function refresh() {
  if (!document.hidden && page) {
    const mine = turn;
    try {
      await page.load(true);
      trouble(null);
    } catch (error) {
      // What is shown stays while nobody answers; a right that has ended takes it away.
      if (mine === turn && [401, 403, 404].includes(error.status)) refused(error);
      else trouble(error);
    }
  }
  setTimeout(refresh, EVERY_MILLISECONDS);
}

document.getElementById("leave").addEventListener("click", () => { signIn(""); ask(null); });
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("refused", (event) => refused(event.detail));
window.addEventListener("hashchange", () => { if (session) { show(); } });

enter("");
setTimeout(refresh, EVERY_MILLISECONDS);
