import { get } from "./api.js";
import { announce, h, replace, scrolled } from "./dom.js";
import { cellClass } from "./table.js";

// Keys of one stroke of the hand become one request; whoever waits for the answer must not notice.
const WAIT_MILLISECONDS = 20;

// A list whose pages, filters and counts the console itself makes: only one page is ever here.
export class Paged {
  constructor({ path, title, columns, kinds, kindTitle, namespaced = false, search = "Search", noun = "row", many = `${noun}s`, extra = null, limit = 50, empty = "nothing to show" }) {
    Object.assign(this, { path, title, columns, kinds, noun, many, extra, empty });
    this.query = { q: "", namespace: "", kind: "", offset: 0, limit };
    const typed = (name) => (event) => { clearTimeout(this.timer); this.timer = setTimeout(() => this.ask({ [name]: event.target.value.trim() }), WAIT_MILLISECONDS); };
    this.kind = h("select", { onchange: (event) => this.ask({ kind: event.target.value }) });
    this.tools = h("div", { class: "tools" },
      h("label", {}, search, h("input", { type: "search", autocomplete: "off", maxlength: "253", oninput: typed("q") })),
      namespaced ? h("label", {}, "Namespace", h("input", { type: "search", autocomplete: "off", maxlength: "63", placeholder: "all that you may see", oninput: typed("namespace") })) : null,
      kinds ? h("label", {}, kindTitle, this.kind) : null);
    this.note = h("p", { class: "soft" });
    this.problem = h("p", { class: "bad", role: "alert" });
    this.before = h("div");
    this.body = h("tbody");
    this.caption = h("caption");
    this.table = h("table", {}, this.caption,
      h("thead", {}, h("tr", {}, columns.map((one) => h("th", { scope: "col", class: one.number ? "num" : null }, one.title)))), this.body);
    this.back = h("button", { type: "button", onclick: () => this.ask({ offset: Math.max(0, this.query.offset - this.query.limit) }) }, "Previous");
    this.next = h("button", { type: "button", onclick: () => this.ask({ offset: this.query.offset + this.query.limit }) }, "Next");
    this.place = h("span", { class: "soft" });
    this.pager = h("div", { class: "pager" }, this.back, this.next, this.place);
    this.element = h("div", {}, h("h1", {}, title), this.before, this.tools, this.problem, this.note, scrolled(this.table), this.pager);
  }

  async ask(changed) {
    this.query = { ...this.query, offset: 0, ...changed };
    try {
      await this.load();
      this.problem.textContent = "";
    } catch (error) {
      if (error.status === 401) { document.dispatchEvent(new CustomEvent("refused", { detail: error })); return; }
      this.problem.textContent = `${error.message}${error.remedy ? `: ${error.remedy}` : ""}`;
    }
  }

  // What somebody reads at this moment is not exchanged under them: quiet stands for a refresh.
  async load(quiet = false) {
    const asked = this.query;
    const { body, unchanged } = await get(this.path, asked);
    if (asked !== this.query || (unchanged && this.shown === body)) return;
    if (quiet && this.body.contains(document.activeElement)) return;
    this.shown = body;
    this.draw(body);
  }

  draw(body) {
    const total = body.total ?? body.items.length;
    const counted = this.kinds ? this.kinds(body) : null;
    if (counted && document.activeElement !== this.kind) {
      replace(this.kind, h("option", { value: "" }, "all"), counted.map(([kind, count]) => h("option", { value: kind }, `${kind} (${count})`)));
      this.kind.value = this.query.kind;
      if (this.kind.value !== this.query.kind) { this.kind.append(h("option", { value: this.query.kind }, this.query.kind)); this.kind.value = this.query.kind; }
    }
    replace(this.before, this.extra ? this.extra(body) : null);
    const notes = [];
    if (body.everywhere === false) notes.push("You see what lies in namespaces that you may look into.");
    if (body.partial) notes.push("There are more namespaces than were asked about: name one.");
    this.note.textContent = notes.join(" ");
    const line = (row) => h("tr", {}, this.columns.map((column, at) => at === 0
      ? h("th", { scope: "row", class: column.style?.(row) }, column.cell(row))
      : h("td", { class: cellClass(column) }, column.cell(row))));
    replace(this.body, body.items.length ? body.items.map(line) : h("tr", {}, h("td", { colspan: this.columns.length, class: "soft" }, this.empty)));
    const first = body.offset ?? 0;
    this.place.textContent = total ? `${first + 1}–${first + body.items.length} of ${total.toLocaleString("en")}` : "";
    this.caption.textContent = `${total.toLocaleString("en")} ${total === 1 ? this.noun : this.many}`;
    this.pager.hidden = total <= this.query.limit;
    this.back.disabled = first === 0;
    this.next.disabled = first + body.items.length >= total;
    announce(this.caption.textContent);
  }
}
