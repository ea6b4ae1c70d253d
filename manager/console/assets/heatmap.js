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
  arrange(total, order) {
    const same = this.total === total && order.length === this.order.length && order.every((one, at) => one === this.order[at]);
    this.total = total;
    this.order = order;
    if (same) return;
    while (this.cells.length < order.length) this.cells.push(h("div", { role: "option", tabindex: "-1" }));
    this.element.classList.toggle("large", order.length <= FEW);
    const shown = this.cells.slice(0, order.length);
    shown.forEach((cell, at) => { cell.place = at; });
    const present = this.element.childElementCount;
    if (present < shown.length) this.element.append(...shown.slice(present));
    for (let at = present; at > shown.length; at -= 1) this.element.lastElementChild.remove();
    this.at = Math.min(this.at, Math.max(0, order.length - 1));
    shown.forEach((cell, at) => { const stop = at === this.at ? 0 : -1; if (cell.tabIndex !== stop) cell.tabIndex = stop; });
  }

  // value(index): 0..1 or null; off(index): takes no pods; name(index): what a screen reader says.
  paint(value, off, name) {
    this.name = name;
    this.order.forEach((node, at) => {
      const found = value(node);
      const step = found === null ? "x" : Math.max(0, Math.min(STEPS - 1, Math.floor(found * STEPS)));
      const chosen = off(node) ? `h${step} off` : `h${step}`;
      const cell = this.cells[at];
      if (cell.className !== chosen) cell.className = chosen;
      if (cell.ariaLabel !== null && cell.node !== node) cell.ariaLabel = null;
      cell.node = node;
    });
    const current = this.cells[this.at];
    if (current && this.order.length) current.ariaLabel = name(this.order[this.at]);
  }

  // Screen readers that walk without focus want every name; they are written when the page is idle.
  label() {
    this.order.forEach((node, at) => { this.cells[at].ariaLabel = this.name(node); });
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
    cell.ariaLabel = this.name(this.order[to]);
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

