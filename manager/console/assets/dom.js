// Elements without markup in strings: what tenants wrote stays text.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(3).filter(Boolean));
}

// Say something to screen readers without moving the focus.
export function announce(text) {
  const place = document.getElementById("announce");
  if (place.textContent !== text) place.textContent = text;
}

export const width = (element, percent) => {
  element.style.width = `${Math.max(0, Math.min(100, percent))}%`;
  return element;
};

// A table that is wider than the window is scrolled sideways, with the keys as well.
const widths = new ResizeObserver((seen) => seen.forEach(({ target }) => {
  for (const place of [target, target.parentElement]) {
    if (!place?.classList.contains("wide")) continue;
    const wider = place.scrollWidth > place.clientWidth;
    const title = place.querySelector("caption")?.textContent ?? "Table";
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", `${title}: scrolls sideways`]]) {
      if (wider) place.setAttribute(name, value);
      else place.removeAttribute(name);
    }
  }
}));

export function scrolled(table) {
  const place = h("div", { class: "wide" }, table);
  widths.observe(place);
  widths.observe(table);
  return place;
}

export const nodeLink = (name) => (name ? h("a", { href: `#/nodes/${encodeURIComponent(name)}` }, name) : "–");

export function tiles(...entries) {
  return h("dl", { class: "tiles" }, entries.filter(Boolean).map(([title, value, small]) =>
    h("div", { class: "tile" }, h("dt", {}, title), h("dd", {}, String(value), small ? [" ", h("small", {}, small)] : null))));
}
