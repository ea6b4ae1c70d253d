import { h, replace, scrolled } from "./dom.js";

// A table with sortable columns that shows one page of rows at a time.
// columns: {title, cell(row), value(row)?, number?, text?, short?}; rows may be exchanged with show().
export const cellClass = (column) => (column.number ? "num" : column.text ? "text" : column.short ? "short" : null);

export class Table {
  constructor(caption, columns, { size = 25, sort = null, descending = false, empty = "nothing to show" } = {}) {
    this.columns = columns;
    this.size = size;
    this.sort = sort;
    this.descending = descending;
    this.first = 0;
    this.rows = [];
    this.empty = empty;
    this.body = h("tbody");
    this.heads = columns.map((column, at) => this.head(column, at));
    this.table = h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.back = h("button", { type: "button", onclick: () => this.turn(-1) }, "Previous");
    this.next = h("button", { type: "button", onclick: () => this.turn(1) }, "Next");
    this.place = h("span", { class: "soft", role: "status" });
    this.pager = h("div", { class: "pager" }, this.back, this.next, this.place);
    this.element = h("div", {}, scrolled(this.table), this.pager);
  }

  head(column, at) {
    const attributes = { scope: "col", class: column.number ? "num" : null };
    if (!column.value) return h("th", attributes, column.title);
    return h("th", attributes, h("button", { type: "button", onclick: () => this.by(at) }, column.title));
  }

  by(at) {
    this.descending = this.sort === at ? !this.descending : Boolean(this.columns[at].number);
    this.sort = at;
    this.first = 0;
    this.draw();
  }

  turn(by) {
    this.first = Math.max(0, this.first + by * this.size);
    this.draw();
  }

  show(rows) {
    this.rows = rows;
    if (this.first >= rows.length) this.first = 0;
    this.draw();
  }

  draw() {
    const rows = this.ordered();
    const shown = rows.slice(this.first, this.first + this.size);
    this.heads.forEach((head, at) => {
      if (at === this.sort) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    replace(this.body, shown.length ? shown.map((row) => this.line(row)) : h("tr", {}, h("td", { colspan: this.columns.length, class: "soft" }, this.empty)));
    this.pager.hidden = rows.length <= this.size;
    this.back.disabled = this.first === 0;
    this.next.disabled = this.first + this.size >= rows.length;
    this.place.textContent = `${this.first + 1}–${Math.min(this.first + this.size, rows.length)} of ${rows.length.toLocaleString("en")}`;
  }

  ordered() {
    const value = this.sort === null ? null : this.columns[this.sort].value;
    if (!value) return this.rows;
    const sign = this.descending ? -1 : 1;
    return [...this.rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
      return x < y ? -sign : x > y ? sign : 0;
    });
  }

  line(row) {
    return h("tr", {}, this.columns.map((column, at) =>
      at === 0
        ? h("th", { scope: "row" }, column.cell(row))
        : h("td", { class: cellClass(column) }, column.cell(row))));
  }
}
