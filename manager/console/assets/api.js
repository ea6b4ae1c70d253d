// The token lives in this module only: not in storage, not in a cookie, not in an address.
let token = "";
const known = new Map();
const MOST_KNOWN = 40;

export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the console answered ${status}`);
    this.status = status;
    this.remedy = body.remedy || "";
  }
}

export function signIn(written) {
  token = written.trim();
  known.clear();
}

export const signedIn = () => token !== "";

// Return a document; unchanged is true where it is the same as at the last call.
export async function get(path, query = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  const address = `api/${path}${words.size ? `?${words}` : ""}`;
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  const before = known.get(address);
  if (before) headers["If-None-Match"] = before.tag;
  let answer;
  try {
    answer = await fetch(address, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    throw new Refused(0, { error: "the console does not answer", remedy: "look whether the manager, or the port-forward to it, still runs" });
  }
  if (answer.status === 304 && before) return { body: before.body, unchanged: true };
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, body);
  known.delete(address);
  known.set(address, { tag: answer.headers.get("ETag") || "", body });
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value);
  return { body, unchanged: false };
}
