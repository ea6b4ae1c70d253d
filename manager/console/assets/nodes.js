import { get } from "./api.js";
import { announce, h, nodeLink, replace, tiles, width } from "./dom.js";
import { amount, bytes, cores, count, percent, share } from "./format.js";
import { HeatMap, legend } from "./heatmap.js";
import { Table } from "./table.js";

const ratio = (part, whole) => (part === null || part === undefined || !whole ? null : part / whole);
const MEASURES = {
  "cpu-used": ["CPU in use", "of the CPU is in use", (d, i) => d.cpu.used && ratio(d.cpu.used[i], d.cpu.capacity[i])],
  "cpu-requested": ["CPU requested by online pods", "of the CPU is requested", (d, i) => d.cpu.requested && ratio(d.cpu.requested[i], d.cpu.capacity[i])],
  "cpu-lent": ["CPU lent to batch pods", "of the CPU is lent", (d, i) => ratio(d.cpu.lent[i], d.cpu.capacity[i])],
  "cpu-borrowed": ["Lent CPU that batch pods requested", "of the lent CPU is requested", (d, i) => d.cpu.borrowed && ratio(d.cpu.borrowed[i], d.cpu.lent[i])],
  "memory-used": ["Memory in use", "of the memory is in use", (d, i) => d.memory.used && ratio(d.memory.used[i], d.memory.capacity[i])],
  "memory-lent": ["Memory lent to batch pods", "of the memory is lent", (d, i) => ratio(d.memory.lent[i], d.memory.capacity[i])],
};

export class Nodes {
  title = "Nodes";

  constructor() {
    this.measure = "cpu-used";
    this.text = "";
    this.zone = "";
    this.order = "name";
    this.summary = h("div");
    this.note = h("p", { class: "soft" });
    this.seen = h("p", { class: "look", "aria-hidden": "true" });
    this.none = h("p", { class: "soft", hidden: true });
    this.map = new HeatMap("Nodes; arrow keys move, Enter opens a node", {
      open: (node) => { location.hash = `#/nodes/${encodeURIComponent(this.data.names[node])}`; },
      look: (node) => { this.seen.textContent = this.say(node); },
    });
    const field = (title, input) => h("label", {}, title, input);
    this.measures = h("select", { onchange: (e) => { this.measure = e.target.value; this.draw(); } },
      Object.entries(MEASURES).map(([key, [title]]) => h("option", { value: key }, title)));
    this.zones = h("select", { onchange: (e) => { this.zone = e.target.value; this.draw(); } });
    this.tools = h("div", { class: "tools" },
      field("Colour by", this.measures),
      field("Name contains", h("input", { type: "search", autocomplete: "off", oninput: (e) => { this.text = e.target.value.toLowerCase(); this.draw(); } })),
      field("Zone", this.zones),
      field("Order", h("select", { onchange: (e) => { this.order = e.target.value; this.draw(); } },
        h("option", { value: "name" }, "by name"), h("option", { value: "high" }, "highest first"), h("option", { value: "low" }, "lowest first"))));
    const d = () => this.data;
    this.table = new Table("The same nodes as a table", [
      { title: "Node", cell: (i) => nodeLink(d().names[i]), value: (i) => d().names[i] },
      { title: "CPU: online, batch, idle", cell: (i) => bar(d(), i) },
      { title: "CPU", number: true, cell: (i) => cores(d().cpu.capacity[i]), value: (i) => d().cpu.capacity[i] },
      { title: "requested", number: true, cell: (i) => cores(d().cpu.requested?.[i]), value: (i) => d().cpu.requested?.[i] ?? null },
      { title: "in use", number: true, cell: (i) => share(d().cpu.used?.[i], d().cpu.capacity[i]), value: (i) => ratio(d().cpu.used?.[i], d().cpu.capacity[i]) },
      { title: "lent", number: true, cell: (i) => cores(d().cpu.lent[i]), value: (i) => d().cpu.lent[i] },
      { title: "batch requests", number: true, cell: (i) => cores(d().cpu.borrowed?.[i]), value: (i) => d().cpu.borrowed?.[i] ?? null },
      { title: "Memory in use", number: true, cell: (i) => share(d().memory.used?.[i], d().memory.capacity[i]), value: (i) => ratio(d().memory.used?.[i], d().memory.capacity[i]) },
      { title: "Pods", number: true, cell: (i) => d().pods?.[i] ?? "?", value: (i) => d().pods?.[i] ?? null },
    ], { size: 25, empty: "no node" });
    this.element = h("div", {},
      h("h1", {}, "Nodes"), this.summary, this.tools,
      h("section", { class: "panel", "aria-label": "Heat map of nodes" }, this.none, this.map.element, this.seen, legend("0 %", "100 %")),
      this.note,
      h("ul", { class: "legend", "aria-hidden": "true" }, [["online", "in use by online pods"], ["batch", "requested by batch pods"], ["idle", "requested and idle"], ["free", "free"]].map(([kind, text]) => h("li", {}, h("span", { class: `swatch ${kind}` }), text))),
      this.table.element);
    this.element.stays = true;
  }

  async load(quiet = false) {
    const { body, unchanged } = await get("nodes");
    if (unchanged && this.data === body) return;
    if (quiet && this.table.body.contains(document.activeElement)) return;
    this.data = body;
    const zones = body.zones.filter(Boolean).sort();
    if (zones.join() !== this.known) {
      this.known = zones.join();
      replace(this.zones, h("option", { value: "" }, "all"), zones.map((zone) => h("option", { value: zone }, zone)));
      this.zones.value = this.zone;
    }
    const lacks = [!body.cpu.used && "NodeMetrics, so nothing is known of use", !body.pods && "pods in all namespaces, so requests are not shown"].filter(Boolean);
    this.note.textContent = lacks.length ? `You may not list ${lacks.join("; nor ")}.` : "";
    this.total();
    this.draw();
  }

  total() {
    const { names, ready, cpu, pods } = this.data;
    const sum = (column) => (column ? column.reduce((a, b) => a + (b ?? 0), 0) : null);
    const [capacity, requested, used, lent, borrowed] = [cpu.capacity, cpu.requested, cpu.used, cpu.lent, cpu.borrowed].map(sum);
    const off = ready.filter((one) => !one).length;
    replace(this.summary, tiles(
      ["Nodes", names.length.toLocaleString("en"), off ? `${off} ${off === 1 ? "takes" : "take"} no pods` : names.length ? "all take pods" : ""],
      ["CPU", cores(capacity), "cores"],
      requested !== null && ["Requested by online pods", share(requested, capacity), `${cores(requested)} cores`],
      used !== null && ["In use", share(used, capacity), `${cores(used)} cores`],
      ["Lent to batch pods", cores(lent), `cores, ${share(lent, capacity)}`],
      borrowed !== null && ["Requested by batch pods", cores(borrowed), `cores, ${share(borrowed, lent)} of lent CPU`],
      pods && ["Pods with a node", sum(pods).toLocaleString("en")]));
  }

  draw() {
    const d = this.data;
    const value = (i) => MEASURES[this.measure][2](d, i) ?? null;
    let order = [];
    for (let i = 0; i < d.names.length; i += 1) {
      if (this.text && !d.names[i].toLowerCase().includes(this.text)) continue;
      if (this.zone && d.zones[d.zone[i]] !== this.zone) continue;
      order.push(i);
    }
    const shown = order;
    if (this.order !== "name") {
      const sign = this.order === "high" ? -1 : 1;
      const found = order.map((i) => [value(i), i]);
      found.sort(([a], [b]) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : sign * (a - b)));
      order = found.map(([, i]) => i);
    }
    this.map.arrange(order);
    this.none.hidden = order.length > 0;
    this.none.textContent = d.names.length ? "No node fits the filters." : "The cluster has no node yet.";
    this.map.paint(value, (i) => !d.ready[i], (i) => this.say(i));
    const idle = window.requestIdleCallback ?? ((later) => setTimeout(later, 200));
    if (order.length <= 1000) idle(() => this.map.label());
    this.table.show(shown);
    announce(count(order.length, "node"));
  }

  say(i) {
    const d = this.data;
    const found = MEASURES[this.measure][2](d, i);
    const first = found === null || found === undefined || found === false ? "not known" : `${Math.round(found * 100)} % ${MEASURES[this.measure][1]}`;
    return `${d.names[i]}: ${first}; ${cores(d.cpu.capacity[i])} cores, ${cores(d.cpu.lent[i])} lent${d.ready[i] ? "" : "; takes no pods"}`;
  }
}

function bar(d, i) {
  const whole = d.cpu.capacity[i] || 1;
  const batch = Math.min(d.cpu.borrowed?.[i] ?? 0, whole);
  const online = Math.max(0, Math.min(d.cpu.used?.[i] ?? 0, whole) - batch);
  const idle = Math.max(0, Math.min((d.cpu.requested?.[i] ?? 0) - online, whole - batch - online));
  const part = (kind, value) => width(h("span", { class: kind }), (100 * value) / whole);
  return h("div", { class: "bar", role: "img", "aria-label": `${percent(online, whole)} % online, ${percent(batch, whole)} % batch, ${percent(idle, whole)} % requested and idle` },
    part("online", online), part("batch", batch), part("idle", idle));
}

export class Node {
  constructor(name) {
    this.name = name;
    this.title = `Node ${name}`;
    this.parts = new Map();
    this.places = { tiles: h("div"), lending: h("section", { "aria-label": "Lending" }), labels: h("p") };
    this.table = new Table("Pods on this node", [
      { title: "Pod", cell: (row) => `${row.namespace}/${row.name}`, value: (row) => `${row.namespace}/${row.name}` },
      { title: "Class", cell: (row) => row.class || "–", value: (row) => row.class },
      { title: "Runs on", short: true, cell: (row) => (row.batch ? "lent resources" : "its own request"), value: (row) => row.batch },
      { title: "CPU", number: true, cell: (row) => cores(row.cpu), value: (row) => row.cpu },
      { title: "Memory", number: true, cell: (row) => bytes(row.memory), value: (row) => row.memory },
    ], { size: 15, empty: "no pods that you may see" });
    this.hidden = h("p", { class: "soft" });
    this.element = h("div", {}, h("p", {}, h("a", { href: "#/nodes" }, "← all nodes")), h("h1", {}, this.title),
      this.places.tiles, this.places.lending,
      h("section", { "aria-label": "Pods" }, h("h2", {}, "Pods"), this.hidden, this.table.element),
      h("details", { class: "panel" }, h("summary", {}, "Labels and taints"), this.places.labels));
  }

  async load() {
    const { body, unchanged } = await get(`nodes/${encodeURIComponent(this.name)}`);
    if (unchanged && this.shown) return;
    this.shown = true;
    const { offered, usage, lending, ready } = body;
    this.part("tiles", [ready, offered, usage], () => tiles(
      ["State", ready ? "takes pods" : "takes no pods"],
      ["CPU", cores(offered.cpu ?? 0), "cores"],
      ["Memory", bytes(offered.memory ?? 0)],
      usage && ["CPU in use", share(usage.node.cpu, offered.cpu), `${cores(usage.node.cpu)} cores`],
      usage && ["… by online pods", cores(usage.online.cpu), "cores"],
      usage && ["… by batch pods", cores(usage.batch.cpu), "cores"],
      ["Lent CPU", cores(offered["kubernetes.io/batch-cpu"] ?? 0), "cores"],
      ["Lent memory", bytes(offered["kubernetes.io/batch-memory"] ?? 0)]));
    this.part("lending", [lending?.sentence, lending?.resources, lending?.written?.kept, body.lendingNeeds], () => lent(lending, body.lendingNeeds));
    this.part("labels", [body.labels, body.taints], () => [
      body.taints.length ? body.taints.map((taint) => h("span", { class: "tag" }, taint)) : "no taints; ",
      Object.entries(body.labels).map(([key, value]) => h("span", { class: "tag" }, value ? `${key}=${value}` : key))]);
    this.hidden.textContent = body.somePodsHidden ? "You see pods of namespaces that you may look into." : "";
    const pods = JSON.stringify(body.pods);
    if (this.pods !== pods) { this.pods = pods; this.table.show(body.pods); }
  }

  // Exchange a part of the page where what it shows has changed; age alone is no change.
  part(name, facts, made) {
    const told = JSON.stringify(facts);
    if (this.parts.get(name) === told) return;
    this.parts.set(name, told);
    replace(this.places[name], made());
  }
}

function lent(found, needs) {
  const title = h("h2", {}, "What it lends, and why");
  if (needs) return [title, h("p", {}, `You may not ${needs.join(", ")}.`)];
  if (!found) return [title, h("p", {}, "The manager has no readable cluster settings yet.")];
  const age = found.report_age === null ? "" : ` The figures are from the agent's report of ${Math.round(found.report_age)} s ago.`;
  return [title, h("p", {}, `Node ${found.node} ${found.sentence}.${age}`.replace("..", ".")),
    found.written?.kept ? h("p", { class: "warn" }, `What stands on the node differs: ${found.written.kept}.`) : null,
    h("div", { class: "cols" }, (found.resources ?? []).filter((one) => one.terms.some((term) => term.value) || one.offered).map(waterfall))];
}

// One lent resource: a row per term, and bars that start where the sum stands.
export function waterfall(resource) {
  const steps = [];
  let sum = 0;
  for (const term of resource.terms) {
    if (!term.value && steps.length) continue;
    const before = sum;
    sum += term.value;
    // What would go below nothing takes nothing off.
    const ends = [Math.max(0, Math.min(before, sum)), Math.max(0, Math.max(before, sum))];
    steps.push([term.name, term.value, ...ends, term.value < 0 ? "minus" : "plus"]);
  }
  const total = Math.max(sum, 0);
  if (steps.length > 1) steps.push(["left", total, 0, total, "sum"]);
  if (resource.percent !== null) steps.push([`${resource.percent} % of that`, Math.floor((total * resource.percent) / 100), 0, (total * resource.percent) / 100, "share"]);
  if (resource.capped) steps.push(["no more than", resource.cap, 0, resource.cap, "share"]);
  steps.push(["it offers", resource.offered, 0, resource.offered, "share"]);
  const most = Math.max(1, ...steps.map(([, , , end]) => end));
  const line = ([name, value, start, end, kind]) => {
    const piece = h("div", { class: kind });
    width(piece, end > start ? Math.max(0.4, (100 * (end - start)) / most) : 0);
    piece.style.marginLeft = `${Math.max(0, (100 * start) / most)}%`;
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "flow", "aria-hidden": "true" }, piece), h("td", { class: "num" }, amount(resource.resource, value)));
  };
  return h("table", { class: "fall panel" }, h("caption", {}, `${resource.resource} by policy ${resource.policy}`),
    h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col" }, "Term"), h("th", {}, "Bar"), h("th", { scope: "col" }, "Amount"))),
    h("tbody", {}, steps.map(line)));
}

