/** Where the document and its details come from: the page itself, or the server that it was loaded from. */

/** @import { Action, Details, TimeLine } from "./types.js" */

const RETRY_MS = 1000;

/** @param {string} path @param {RequestInit} [options] @returns {Promise<any>} */
async function call(path, options) {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  const body = await answer.json().catch(() => ({ message: answer.statusText }));
  if (!answer.ok) throw new Error(body.message ?? answer.statusText);
  return body;
}

/** @param {Record<string, string | number>} values */
const query = (values) => new URLSearchParams(Object.entries(values).map(([name, value]) => [name, String(value)])).toString();
/** Return "Pod/default/a" of "Pod default/a". @param {string} key */
const path = (key) => key.replace(" ", "/");

export class Source {
  /** @param {Document} page */
  constructor(page) {
    const element = page.getElementById("timeline");
    /** @type {TimeLine | null} */
    this.inline = element ? JSON.parse(element.textContent ?? "") : null;
    /** @type {string} */
    this.token = "";
    /** @type {Map<string, Promise<any>>} what was asked of a moment does not change */
    this.known = new Map();
  }

  get served() {
    return this.inline === null;
  }

  /** @returns {Promise<TimeLine>} */
  async document() {
    this.known.clear();
    return this.inline ?? call("api/timeline");
  }

  /** @param {string} url @returns {Promise<any>} */
  once(url) {
    const known = this.known.get(url) ?? call(url);
    this.known.set(url, known);
    if (this.known.size > 200) this.known.delete(/** @type {string} */ (this.known.keys().next().value));
    known.catch(() => this.known.delete(url));
    return known;
  }

  /** Return the object at a revision, with the fields that it changed. @param {string} key @param {number} revision @returns {Promise<Details>} */
  async object(key, revision) {
    return this.inline ? (this.inline.details?.[revision] ?? {}) : this.once(`api/object?${query({ object: path(key), revision })}`);
  }

  /** Return the lines that `nominee history` prints; the newest revision makes the question a new one. @param {string} key @param {number} newest @returns {Promise<string[] | null>} */
  async history(key, newest) {
    return this.inline ? null : (await this.once(`api/history?${query({ object: path(key), newest })}`)).lines;
  }

  /** @param {string} key @param {number} revision @returns {Promise<{decisions: string[], explain: string[]} | null>} */
  async why(key, revision) {
    return this.inline ? null : this.once(`api/why?${query({ object: path(key), revision })}`);
  }

  /** @returns {Promise<Action[]>} */
  async actions() {
    if (this.inline) return [];
    const answer = await call("api/actions");
    this.token = answer.token;
    return answer.actions;
  }

  /** @param {string} name @param {string} target @param {Record<string, string>} fields @param {boolean} dry @returns {Promise<{command: string, output?: string, ok?: boolean}>} */
  act(name, target, fields, dry) {
    const headers = { "Content-Type": "application/json", "X-Nominee-Token": this.token };
    return call(`api/actions/${name}`, { method: "POST", headers, body: JSON.stringify({ target, fields, dry }) });
  }

  /**
   * Follow the cluster from a revision; a broken connection is made again from the newest one.
   * @param {() => number} after @param {Record<string, (data: any) => void>} handlers @param {(connected: boolean) => void} connected
   */
  follow(after, handlers, connected) {
    const events = new EventSource(`api/events?after=${after()}`);
    events.onopen = () => connected(true);
    events.onerror = () => {
      events.close();
      connected(false);
      setTimeout(() => this.follow(after, handlers, connected), RETRY_MS);
    };
    for (const [name, handle] of Object.entries(handlers))
      events.addEventListener(name, (event) => {
        if (name === "reset") events.close();
        handle(JSON.parse(event.data || "null"));
      });
  }
}
