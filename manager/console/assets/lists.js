import { get } from "./api.js";
import { announce, h, nodeLink, replace, scrolled, tiles, width } from "./dom.js";
import { ago, bytes, cores, count, moment, share } from "./format.js";
import { Paged } from "./paged.js";

const tag = (text, tone) => h("span", { class: tone ? `tag ${tone}` : "tag" }, text);
const TONES = { Running: "good", Available: "good", Succeeded: "good", free: "good", Failed: "bad", BelowMinimum: "bad", faulty: "bad", Aborted: "bad", Waiting: "warn", Pending: "warn", shared: "", full: "" };
const state = (text) => tag(text || "–", TONES[text]);
const amounts = (found) => Object.entries(found).map(([key, value]) => (key === "cpu" || key === "memory" ? `${key} ${value}` : `${value} ${key}`)).join(", ") || "–";

// Bars of a few counts, longest first, as a table that shows and says the same.
function counts(title, rows) {
  const most = Math.max(1, ...rows.map(([, number]) => number));
  return h("table", { class: "fall" }, h("caption", {}, title), h("tbody", {}, rows.map(([name, number]) => h("tr", {},
    h("th", { scope: "row" }, name),
    h("td", { class: "flow", "aria-hidden": "true" }, width(h("div", { class: "share" }), Math.max(0.5, (100 * number) / most))),
    h("td", { class: "num" }, number.toLocaleString("en"))))));
}

export function pending() {
  const page = new Paged({
    path: "pending", title: "Pending pods", noun: "pending pod", search: "Name or reason contains", namespaced: true, kindTitle: "Waits for",
    kinds: (body) => body.kinds.map((one) => [one.kind, one.pods]),
    empty: "no pod that you may see waits for a node",
    extra: (body) => (body.kinds.length ? counts("What pods wait for", body.kinds.slice(0, 6).map((one) => [one.kind, one.pods])) : null),
    columns: [
      { title: "Pod", cell: (row) => `${row.namespace}/${row.name}` },
      { title: "Class", cell: (row) => row.class || "–" },
      { title: "CPU", number: true, cell: (row) => cores(row.cpu) },
      { title: "Memory", number: true, cell: (row) => bytes(row.memory) },
      { title: "Runs on", short: true, cell: (row) => (row.batch ? "lent resources" : "its own request") },
      { title: "Waits", number: true, cell: (row) => ago(row.since) },
      { title: "Priority", number: true, cell: (row) => row.priority },
      { title: "Why", text: true, cell: (row) => row.reason },
    ],
  });
  return page;
}

const HEAD = ["Quota", "Resource", "Own, borrowed, free", "Used", "May use", "Guaranteed", "Cap", "Borrows", "Lends", "Waiting"];
const QUOTAS_AT_ONCE = 30;

export class Quotas {
  title = "Quotas";

  constructor() {
    this.first = 0;
    this.text = "";
    this.note = h("p", { class: "soft" });
    this.caption = h("caption");
    this.body = h("tbody");
    const turn = (by) => () => { this.first = Math.max(0, this.first + by * QUOTAS_AT_ONCE); this.draw(); };
    this.back = h("button", { type: "button", onclick: turn(-1) }, "Previous");
    this.next = h("button", { type: "button", onclick: turn(1) }, "Next");
    this.place = h("span", { class: "soft" });
    this.pager = h("div", { class: "pager" }, this.back, this.next, this.place);
    this.element = h("div", {}, h("h1", {}, "Elastic quotas"),
      h("div", { class: "tools" }, h("label", {}, "Quota or namespace contains",
        h("input", { type: "search", autocomplete: "off", oninput: (event) => { this.text = event.target.value.toLowerCase(); this.first = 0; this.draw(); } }))),
      this.note,
      h("ul", { class: "legend", "aria-hidden": "true" }, [["online", "used, guaranteed"], ["batch", "used, borrowed"], ["free", "may be used"]].map(([kind, text]) => h("li", {}, h("span", { class: `swatch ${kind}` }), text))),
      scrolled(h("table", {}, this.caption,
        h("thead", {}, h("tr", {}, HEAD.map((text, at) => h("th", { scope: "col", class: at > 2 ? "num" : null }, text)))), this.body)),
      this.pager);
  }

  async load(quiet = false) {
    const { body, unchanged } = await get("quotas");
    if (unchanged && this.shown === body) return;
    if (quiet && this.body.contains(document.activeElement)) return;
    this.shown = body;
    this.draw();
  }

  draw() {
    const { items, everywhere } = this.shown;
    const found = this.text ? items.filter((row) => `${row.name} ${row.namespace}`.toLowerCase().includes(this.text)) : items;
    if (this.first >= found.length) this.first = 0;
    const part = found.slice(this.first, this.first + QUOTAS_AT_ONCE);
    const lines = part.flatMap((row) => (row.amounts.length ? row.amounts : [null]).map((one, at) => this.line(row, one, at)));
    replace(this.body, lines.length ? lines : h("tr", {}, h("td", { colspan: HEAD.length, class: "soft" }, "no ElasticQuota that you may see")));
    this.note.textContent = everywhere ? "" : "You see quotas of namespaces that you may look into.";
    this.caption.textContent = `${count(found.length, "quota")}, parents before their children`;
    this.place.textContent = found.length ? `${this.first + 1}–${this.first + part.length} of ${found.length}` : "";
    this.pager.hidden = found.length <= QUOTAS_AT_ONCE;
    this.back.disabled = this.first === 0;
    this.next.disabled = this.first + part.length >= found.length;
    announce(this.caption.textContent);
  }

  line(row, one, at) {
    const name = at > 0 ? h("span", { class: "unseen" }, row.name) : [row.name, " ", row.namespace ? h("small", { class: "soft" }, row.namespace) : null];
    const first = h("th", { scope: "row", class: row.depth ? `indent${row.depth}` : null }, name);
    if (one === null) return h("tr", {}, first, h("td", { colspan: 9, class: "soft" }, "bounds nothing"));
    const bar = one.bar && h("div", { class: "bar", role: "img", "aria-label": `${Math.round(one.bar.own * 100)} % used of its own, ${Math.round(one.bar.borrowed * 100)} % borrowed, ${Math.round(one.bar.free * 100)} % free` },
      width(h("span", { class: "online" }), one.bar.own * 100), width(h("span", { class: "batch" }), one.bar.borrowed * 100));
    const number = (text) => h("td", { class: "num" }, text || "–");
    return h("tr", {}, first, h("td", {}, one.resource), h("td", {}, bar), number(one.used), number(one.entitled), number(one.guaranteed), number(one.cap), number(one.borrowed), number(one.lent), number(one.waiting));
  }
}

export function devices() {
  return new Paged({
    path: "devices", title: "Devices and topology", noun: "node with devices", many: "nodes with devices", limit: 20, search: "Node contains", kindTitle: "Show",
    kinds: (body) => [["problems", body.withProblems]],
    empty: "no node has devices", extra: deviceHead,
    columns: [
      { title: "Node", cell: (row) => nodeLink(row.node) },
      { title: "Devices", cell: (row) => h("div", { class: "slots" }, row.devices.map(slot)) },
      { title: "Held by", text: true, cell: (row) => holders(row) },
      { title: "Problems", text: true, cell: (row) => (row.problems.length ? row.problems.map((one) => h("p", {}, h("span", { class: "bad" }, one.text), `: ${one.remedy}`)) : row.faults ? String(row.faults) : "none") },
    ],
  });
}

function slot(device) {
  const title = `${device.type} ${device.minor} ${device.model}: ${device.state}, ${device.percent} % given`;
  return h("span", { class: `slot ${device.state}`, title }, h("span", { "aria-hidden": "true" }, device.state === "faulty" ? "✕" : `${device.percent}`), h("span", { class: "unseen" }, title));
}

function holders(row) {
  const found = row.devices.flatMap((one) => one.holders.map((holder) => `${holder.pod} ${holder.percent} % of ${one.type} ${one.minor}`));
  const hidden = row.devices.reduce((sum, one) => sum + one.hidden, 0);
  const claims = row.devices.flatMap((one) => one.claims.map((claim) => `ResourceClaim ${claim}`));
  const shown = [...found, ...claims].slice(0, 6);
  const more = found.length + claims.length - shown.length;
  return [...shown, more > 0 ? `and ${more} more` : "", hidden ? `${count(hidden, "pod")} that you may not see` : ""].filter(Boolean).join("; ") || "–";
}

function deviceHead(body) {
  const head = ["Type", "Model", "Total", "Free", "Partly given", "Fully given", "Faulty"];
  const network = body.network;
  return h("div", { class: "cols" },
    scrolled(h("table", {}, h("caption", {}, "All devices"), h("thead", {}, h("tr", {}, head.map((text, at) => h("th", { scope: "col", class: at > 1 ? "num" : null }, text)))),
      h("tbody", {}, body.summary.length ? body.summary.map((one) => h("tr", {}, h("th", { scope: "row" }, one.type || "–"), h("td", {}, one.model || "–"),
        [one.total, one.free, one.shared, one.full, one.faulty].map((number, at) => h("td", { class: at === 4 && number ? "num bad" : "num" }, number)))) : h("tr", {}, h("td", { colspan: 7, class: "soft" }, "there are none")))),
    ),
    scrolled(h("table", {}, h("caption", {}, network ? `Domains of the network: ${network.layers.join(" › ") || "no ClusterNetworkTopology"}` : "You may not list clusternetworktopologies"),
      network?.domains.length ? h("tbody", {}, network.domains.slice(0, 40).map((one) => h("tr", {}, h("th", { scope: "row" }, one.name || "the cluster"), h("td", {}, one.layer), h("td", {}, one.parent ? `in ${one.parent}` : ""), h("td", { class: "num" }, count(one.nodes, "node"))))) : null)));
}

export function gangs() {
  return new Paged({
    path: "gangs", title: "Gangs", noun: "gang", search: "Name contains", namespaced: true, kindTitle: "State",
    kinds: (body) => Object.entries(body.states), empty: "no gang that you may see",
    columns: [
      { title: "Gang", cell: (row) => row.name },
      { title: "State", cell: (row) => state(row.state) },
      { title: "Phase", cell: (row) => row.phase || "–" },
      { title: "Placed", cell: (row) => progress(row.placed, Math.max(row.members, row.minimum)) },
      { title: "Members", number: true, cell: (row) => `${row.placed} of ${row.members}` },
      { title: "Needs", number: true, cell: (row) => row.minimum || "–" },
      { title: "Nodes", number: true, cell: (row) => row.nodes },
      { title: "Waits", number: true, cell: (row) => ago(row.since) },
      { title: "Why", text: true, cell: (row) => row.reason || "–" },
    ],
  });
}

const progress = (part, whole) => h("div", { class: "bar", role: "img", "aria-label": share(part, whole) }, width(h("span", { class: "online" }), whole ? (100 * part) / whole : 0));

export function reservations() {
  return new Paged({
    path: "reservations", title: "Reservations", noun: "Reservation", search: "Name contains", kindTitle: "Phase",
    kinds: (body) => Object.entries(body.phases), empty: "there is no Reservation",
    columns: [
      { title: "Reservation", cell: (row) => row.name },
      { title: "Phase", cell: (row) => state(row.phase) },
      { title: "Node", cell: (row) => nodeLink(row.node) },
      { title: "Keeps", cell: (row) => amounts(row.reserved) },
      { title: "Owners use", cell: (row) => amounts(row.allocated) },
      { title: "Owners", text: true, cell: (row) => row.owners.join(", ") + (row.ownerCount > row.owners.length ? `, and ${row.ownerCount - row.owners.length} more` : "") || "–" },
      { title: "Ends", short: true, cell: (row) => (row.endsAt === null ? "never" : moment(row.endsAt)) },
      { title: "Why", text: true, cell: (row) => row.reason || "–" },
    ],
  });
}

export function migrations() {
  return new Paged({
    path: "migrations", title: "Migrations", noun: "PodMigrationJob", search: "Pod or node contains", kindTitle: "Phase",
    kinds: (body) => Object.entries(body.phases), empty: "no pod is or was moved",
    columns: [
      { title: "Pod", cell: (row) => row.pod },
      { title: "Phase", cell: (row) => [state(row.phase), row.paused ? tag("paused", "warn") : null] },
      { title: "To", cell: (row) => nodeLink(row.to_node) },
      { title: "How", cell: (row) => row.mode || "default" },
      { title: "Created", number: true, cell: (row) => ago(row.created) },
      { title: "Why", text: true, cell: (row) => [row.reason, row.message].filter(Boolean).join(": ") || "–" },
      { title: "Job", cell: (row) => row.name },
    ],
  });
}

export class Scorecard {
  title = "Scorecard";

  constructor() {
    this.content = h("div");
    this.element = h("div", {}, h("h1", {}, "Scorecard"), h("p", { class: "soft" }, "What colocation gives at this moment, from nodes, pods and the agents' reports, and what agents did by day of UTC. ",
      "By namespace: ", h("code", {}, "koord agent scorecard"), "."), this.content);
  }

  async load() {
    const { body: d, unchanged } = await get("scorecard");
    if (unchanged && this.shown === d) return;
    this.shown = d;
    const rate = (part) => (part === null ? "–" : `${(100 * part).toFixed(1)} %`);
    const bar = (title, used, kind, whole) => [title, used, kind, whole];
    const stack = (title, unit, pick) => {
      const whole = pick(d.capacity);
      const rows = [bar("capacity", whole, "free"), bar("requested by online pods", pick(d.requested), "idle"), bar("in use by online pods", pick(d.online), "online"), bar("lent to batch pods", pick(d.lent), "share"), bar("requested by batch pods", pick(d.borrowed), "batch"), bar("in use by batch pods", pick(d.batch), "batch")];
      return h("table", { class: "fall panel" }, h("caption", {}, title), h("tbody", {}, rows.map(([name, value, kind]) => h("tr", {}, h("th", { scope: "row" }, name),
        h("td", { class: "flow", "aria-hidden": "true" }, width(h("div", { class: kind }), (100 * value) / (whole || 1))), h("td", { class: "num" }, `${unit(value)} (${share(value, whole)})`)))));
    };
    replace(this.content,
      tiles(
        ["CPU in use with batch", rate(d.useWith), `${rate(d.useWithout)} without`],
        ["Nodes saved", d.savedNodes, `of ${d.nodes} that are there`],
        ["Batch pods that run", d.batch_pods.toLocaleString("en")],
        ["Lent CPU", cores(d.lent.cpu), "cores"],
        ["Lent memory", bytes(d.lent.memory)],
        ["Nodes that report", d.reported, `of ${d.nodes}`],
        d.moves && ["Moves that succeeded", d.moves.Succeeded ?? 0, `${d.moves.Failed ?? 0} failed`]),
      h("div", { class: "cols" }, stack("CPU in cores", (value) => cores(value), (one) => one.cpu), stack("Memory", bytes, (one) => one.memory)),
      d.waiting.length ? counts("Pods that wait, by reason", d.waiting.map((one) => [one.kind, one.pods])) : h("p", {}, "No pod waits for a node."),
      agentDays(d.days, rate));
  }
}

function agentDays(days, rate) {
  if (!days) return h("p", { class: "soft" }, "What agents did by day is shown to those who may get ConfigMap koord-colocation-report.");
  if (!days.length) return h("p", {}, "No agent has reported what it did yet.");
  const head = ["Day", "Enforced", "Above threshold", "Held back (core-hours)", "Would hold back", "Online throttled", "Evicted", "Would evict", "By strategy"];
  const by = (one) => one.strategies.map((s) => `${s.name} ${s.evicted + s.wouldEvict}`).join(", ") || "–";
  const number = (value) => value.toLocaleString("en");
  return scrolled(
    h("table", { class: "panel" }, h("caption", {}, "What agents did by day"),
      h("thead", {}, h("tr", {}, head.map((one, at) => h("th", { scope: "col", class: at && at < 8 ? "num" : "" }, one)))),
      h("tbody", {}, days.map((one) => h("tr", {}, h("th", { scope: "row" }, one.date),
        [rate(one.enforced), rate(one.aboveThreshold), number(one.heldBack), number(one.wouldHoldBack), rate(one.onlineThrottled), one.evictedOnline ? `${number(one.evicted)}, online ${number(one.evictedOnline)}` : number(one.evicted), number(one.wouldEvict)]
          .map((text) => h("td", { class: "num" }, text)), h("td", {}, by(one)))))));
}
