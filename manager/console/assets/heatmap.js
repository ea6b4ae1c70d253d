import { h } from "./dom.js";

const STEPS = 10;
const FEW = 120;

// One cell per node in a listbox; arrow keys move, Enter opens. `paint` changes colours only.
export class HeatMap {
  constructor(label, { open, look }) {
    this.open = open;
    this.look = look;
    this.cells = [];
    this.order = [];
    this.at = 0;
    this.element = h("div", { class: "heat", role: "listbox", "aria-label": label,
      onkeydown: (event) => this.key(event), onclick: (event) => this.click(event),
      onmouseover: (event) => this.over(event), onfocusin: (event) => this.focused(event) });
  }

  // order: indexes of the nodes that are shown, in their order.
  arrange(order) {
    this.order = order;
    const { cells, element } = this;
    while (cells.length < order.length) {
      const cell = h("div", { role: "option", tabindex: "-1" });
      cell.place = cells.length;
      cells.push(cell);
    }
    element.classList.toggle("large", order.length <= FEW);
    const present = element.childElementCount;
    if (present < order.length) {
      const more = document.createDocumentFragment();
      for (let at = present; at < order.length; at += 1) more.append(cells[at]);
      element.append(more);
    } else if (!order.length) element.replaceChildren();
    else if (present > order.length) {
      const rest = document.createRange();
      rest.setStartBefore(cells[order.length]);
      rest.setEndAfter(element.lastElementChild);
      rest.deleteContents();
    }
    const at = Math.min(this.at, Math.max(0, order.length - 1));
    if (cells[this.at]) cells[this.at].tabIndex = -1;
    if (cells[at]) cells[at].tabIndex = 0;
    this.at = at;
  }

  // value(index): 0..1 or null; off(index): takes no pods; name(index): what a screen reader says.
  // What stands on a cell already is remembered beside it: asking the document is slower.
  paint(value, off, name) {
    this.name = name;
    const { cells, order } = this;
    for (let at = 0; at < order.length; at += 1) {
      const node = order[at];
      const cell = cells[at];
      const found = value(node);
      const step = found === null ? "x" : Math.max(0, Math.min(STEPS - 1, Math.floor(found * STEPS)));
      const chosen = off(node) ? `h${step} off` : `h${step}`;
      if (cell.chosen !== chosen) { cell.className = chosen; cell.chosen = chosen; }
      if (cell.said) { cell.ariaLabel = null; cell.said = false; }
      cell.node = node;
    }
    if (order.length) this.say(this.at);
  }

  say(at) {
    const cell = this.cells[at];
    cell.ariaLabel = this.name(this.order[at]);
    cell.said = true;
  }

  // Screen readers that walk without focus want every name; they are written when the page is idle.
  label() {
    for (let at = 0; at < this.order.length; at += 1) this.say(at);
  }

  columns() {
    return Math.max(1, getComputedStyle(this.element).gridTemplateColumns.split(" ").length);
  }

  key(event) {
    const last = this.order.length - 1;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns(), ArrowUp: -this.columns(), PageDown: this.columns() * 8, PageUp: -this.columns() * 8 };
    let to;
    if (event.key === "Home") to = 0;
    else if (event.key === "End") to = last;
    else if (event.key in steps) to = this.at + steps[event.key];
    else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.open(this.order[this.at]); return; }
    else return;
    event.preventDefault();
    this.move(Math.max(0, Math.min(last, to)));
  }

  move(to) {
    if (!this.order.length) return;
    this.cells[this.at].tabIndex = -1;
    this.at = to;
    const cell = this.cells[to];
    cell.tabIndex = 0;
    this.say(to);
    cell.focus();
  }

  focused(event) {
    if (event.target.place !== undefined && event.target !== this.element) this.look(this.order[event.target.place]);
  }

  over(event) {
    if (event.target !== this.element && event.target.node !== undefined) this.look(event.target.node);
  }

  click(event) {
    if (event.target !== this.element && event.target.node !== undefined) this.open(event.target.node);
  }
}

export function legend(low, high) {
  const ramp = h("span", { class: "ramp", "aria-hidden": "true" }, Array.from({ length: STEPS }, (_, at) => h("span", { class: `h${at}` })));
  return h("ul", { class: "legend" },
    h("li", {}, low, ramp, high),
    h("li", {}, h("span", { class: "swatch hx", "aria-hidden": "true" }), "not known"),
    h("li", {}, h("span", { class: "swatch off", "aria-hidden": "true" }), "takes no pods"));
}

