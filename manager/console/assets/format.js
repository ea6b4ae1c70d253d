export const cores = (milli) => (milli === null || milli === undefined ? "?" : (milli / 1000).toFixed(Math.abs(milli) < 100000 ? 1 : 0));
export const gib = (mib) => (mib === null || mib === undefined ? "?" : `${(mib / 1024).toFixed(Math.abs(mib) < 102400 ? 1 : 0)} GiB`);
export const bytes = (amount) => gib(amount / 1048576);
export const percent = (part, whole) => (whole > 0 && part !== null && part !== undefined ? Math.round((100 * part) / whole) : null);
export const share = (part, whole) => { const found = percent(part, whole); return found === null ? "–" : `${found} %`; };
export const amount = (resource, value) => (resource.includes("cpu") ? `${cores(value)} cores` : bytes(value));
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const moment = (seconds) => new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

export function ago(seconds) {
  if (!seconds) return "–";
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (passed < 90) return `${Math.round(passed)} s`;
  if (passed < 5400) return `${Math.round(passed / 60)} min`;
  if (passed < 172800) return `${Math.round(passed / 3600)} h`;
  return `${Math.round(passed / 86400)} d`;
}
