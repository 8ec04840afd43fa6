/** The entry: loads the document, follows the cluster, keeps what is shown, and renders. */

import { loadActions } from "./actions.js";
import { Autoscaler } from "./autoscaler.js";
import { clusterOf } from "./cluster.js";
import { badgeOf, Components, Marks } from "./components.js";
import { Model } from "./model.js";
import { hueBy, NodesView } from "./nodes.js";
import { ObjectPanel } from "./object.js";
import { drawPause } from "./pace.js";
import { Queues } from "./queues.js";
import { Source } from "./source.js";
import { markFrom, TimeAxis } from "./timeline.js";
import { render } from "./vendor/preact.js";
import { html } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Cluster, Ui } from "./types.js" */

const TABS = { object: "Object", queues: "Queues", autoscaler: "Autoscaler", components: "Components", marks: "Marks" };
/** While playing, a pause of the history longer than this is left out. */
const IDLE_SECONDS = 0.7;
const LINK_MS = 150;
/** Between two attempts to load the document again. */
const RETRY_MS = 1000;

const DARK = matchMedia("(prefers-color-scheme: dark)");
const source = new Source(document);
/** @type {Model} */
let model;
let connected = false;
let failure = "";
let scheduled = false;
let waiting = 0;
const drawn = { end: 0, took: 0, length: 0, writes: 0 };
/** @type {Ui} */
const ui = {
  at: null, selected: "", followed: [], tab: "object", colour: "owner", group: "", zoom: 0, filter: "", playing: false,
  speed: 1, theme: localStored() || "auto", scheme: "", range: null, link: "",
};

/** The theme that was chosen on this page before; a page of a file may have no storage. */
function localStored() {
  try {
    return localStorage.getItem("nominee-theme") ?? "";
  } catch {
    return "";
  }
}

/** @param {Partial<Ui>} changes */
function set(changes) {
  if (changes.playing) play();
  Object.assign(ui, changes);
  if ("at" in changes || "selected" in changes) link();
  schedule();
}

/** Render once before the next frame, however much has changed; a page that is not seen renders too. */
function schedule() {
  if (scheduled) return;
  scheduled = true;
  const draw = () => {
    if (!scheduled) return;
    scheduled = false;
    const began = performance.now();
    show();
    drawn.end = performance.now();
    drawn.took = drawn.end - began;
    drawn.writes = model ? model.length - drawn.length : 0;
    drawn.length = model?.length ?? 0;
  };
  requestAnimationFrame(draw);
  setTimeout(draw, 200);
}

/** Render what the cluster has changed, unless the page is not seen; what a person does is rendered at once. */
function scheduleLater() {
  if (waiting || document.hidden) return;
  const due = drawn.end + drawPause(drawn.took, drawn.writes);
  waiting = setTimeout(() => {
    waiting = 0;
    schedule();
  }, Math.max(due - performance.now(), 0));
}

/** Go to a place; null: the newest revision, now and later. @param {number | null} place */
const seek = (place) => set({ at: place, playing: false });

/** @param {string} key */
const select = (key) => set({ selected: key, tab: "object" });

let linked = 0;
/** Write the moment and the object into the location, which is a link to them; browsers refuse that at every frame. */
function link() {
  clearTimeout(linked);
  linked = setTimeout(() => {
    const moment = new URLSearchParams();
    if (ui.at !== null) moment.set("revision", String(model.numberOf(ui.at)));
    if (ui.selected) moment.set("object", ui.selected);
    history.replaceState(null, "", `#${moment}`);
  }, LINK_MS);
}

/** Go to the moment of the location. */
function follow() {
  const moment = new URLSearchParams(location.hash.slice(1));
  const revision = moment.get("revision");
  ui.at = revision === null ? null : model.placeOfRevision(Number(revision));
  ui.selected = moment.get("object") ?? ui.selected;
  schedule();
}

/** Play from the chosen moment, or from the beginning where that is the end. */
function play() {
  let place = ui.at ?? model.length;
  if (place >= model.length) place = model.first;
  let time = model.timeOf(place);
  let former = performance.now();
  ui.at = place;
  const frame = (/** @type {number} */ now) => {
    if (!ui.playing) return;
    time += ((now - former) / 1000) * ui.speed;
    former = now;
    place = model.placeOfTime(time);
    const next = model.times[place];
    if (next !== undefined && next - time > IDLE_SECONDS * ui.speed) time = next - IDLE_SECONDS * ui.speed;
    const end = place >= model.length;
    set({ at: end && model.document.source === "live" ? null : place, playing: !end && ui.playing });
    if (!end) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** @type {Cluster | null} */
let cluster = null;
let folded = "";

function show() {
  const root = /** @type {HTMLElement} */ (document.getElementById("root"));
  document.documentElement.dataset.theme = ui.theme;
  ui.scheme = ui.theme === "auto" ? (DARK.matches ? "dark" : "light") : ui.theme;
  if (!model) return render(html`<p class="empty loading" role="status">${failure || "Loading the history…"}</p>`, root);
  const place = Math.min(ui.at ?? model.length, model.length);
  const shown = `${place} ${model.length} ${ui.colour}`;
  if (shown !== folded || !cluster) cluster = clusterOf(model.stateAt(place), hueBy(model, ui.colour, place));
  folded = shown;
  render(html`<${Page} app=${{ model, source, ui: { ...ui }, cluster, place, live: ui.at === null, badge: badgeOf(model.document, connected), set, seek, select }} />`, root);
}

/** @param {{app: App}} props */
function Page({ app }) {
  const { coverage, title } = model.document;
  const missing = [...(coverage?.gaps ?? []).map(([begin, end]) => `revisions ${begin} to ${end} are missing`), ...(coverage?.left_out ? [`The first ${coverage.left_out} revisions are left out.`] : [])];
  const { badge } = app;
  const { counts } = app.cluster;
  const next = { auto: "dark", dark: "light", light: "auto" }[ui.theme] ?? "auto";
  return html`<header>
      <h1><span class="logo" aria-hidden="true"></span>nominee <span class="quiet">${title}</span></h1>
      <span class=${`badge ${badge}`}>${badge}</span>
      <ul class="totals">${["running", "starting", "binding", "nominated", "pending", "gated", "terminating", "done"].filter((name) => counts[name]).map((name) => html`<li key=${name}><i class=${`dot state-${name}`}></i><b>${counts[name]}</b> ${name}</li>`)}</ul>
      ${missing.length ? html`<span class="warn" role="note">${missing.join("; ")}</span>` : ""}
      <span class="end buttons">
        <${Find} />
        <button onClick=${copy} title="Copy a link to this moment and object">${ui.link || "Link"}</button>
        <button onClick=${() => theme(next)} title="Colour scheme" aria-label=${`Colour scheme: ${ui.theme}`}>${{ auto: "◐", dark: "☾", light: "☀" }[ui.theme]}</button>
      </span>
    </header>
    <${TimeAxis} app=${app} />
    <main><${NodesView} app=${app} />
      <section class="side panel" aria-label="Details">
        <div class="tabs" role="tablist">${Object.entries(TABS).map(([name, text]) => html`<button role="tab" key=${name} id=${`tab-${name}`} aria-selected=${ui.tab === name} aria-controls="tab" onClick=${() => set({ tab: name })}>${text}</button>`)}</div>
        <div class="tab" id="tab" role="tabpanel" aria-labelledby=${`tab-${ui.tab}`}>
          ${ui.tab === "queues" ? html`<${Queues} app=${app} />` : ui.tab === "autoscaler" ? html`<${Autoscaler} app=${app} />` : ui.tab === "components" ? html`<${Components} app=${app} />` : ui.tab === "marks" ? html`<${Marks} app=${app} />` : html`<${ObjectPanel} app=${app} />`}
        </div>
      </section>
    </main>`;
}

const FOUND_MAX = 30;
/** Find any object of the history by a part of its name. */
function Find() {
  const wanted = ui.find?.toLowerCase() ?? "";
  /** @type {string[]} */
  const found = [];
  if (wanted)
    for (const key of model.places.keys()) {
      if (found.length >= FOUND_MAX) break;
      if (key.toLowerCase().includes(wanted)) found.push(key);
    }
  const enter = (/** @type {any} */ event) => {
    set({ find: event.target.value });
    if (model.places.has(event.target.value)) select(event.target.value);
  };
  return html`<span class="none" role="status">${wanted && !found.length ? "No object has this in its name" : ""}</span>
    <label><span class="sr">Find an object</span><input type="search" list="objects" placeholder="Find an object (/)" id="find" onInput=${enter}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Enter" && found[0] && select(found[0])} /></label>
    <datalist id="objects">${found.map((key) => html`<option value=${key} />`)}</datalist>`;
}

async function copy() {
  const done = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  set({ link: done ? "Copied" : "In the address" });
  setTimeout(() => set({ link: "" }), 1500);
}

/** @param {string} name */
function theme(name) {
  try {
    localStorage.setItem("nominee-theme", name);
  } catch {
    // A page of a file may have no storage.
  }
  set({ theme: name });
}

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (!model || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  const place = Math.min(ui.at ?? model.length, model.length);
  const app = /** @type {App} */ ({ model, place, live: ui.at === null });
  const by = event.key === "ArrowLeft" ? -1 : 1;
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") seek(event.shiftKey ? markFrom(app, by) : model.step(place, by));
  else if (event.key === "Home") seek(model.first);
  else if (event.key === "End") seek(null);
  else if (event.key === " " && target.tagName !== "BUTTON" && target.tagName !== "SUMMARY") set({ playing: !ui.playing });
  else if (event.key === "/") document.getElementById("find")?.focus();
  else if (event.key === "Escape") set({ selected: "" });
  else return;
  event.preventDefault();
});
addEventListener("hashchange", () => model && follow());
DARK.addEventListener("change", schedule);
document.addEventListener("visibilitychange", () => document.hidden || schedule());

/** Load the document, and follow it if it is live. */
async function load() {
  try {
    const loaded = await source.document();
    model = new Model(loaded);
    drawn.length = model.length;
    ui.followed = loaded.follow ?? ui.followed;
    cluster = null;
    document.title = `${loaded.title} · nominee`;
    if (!loaded.read_only) await loadActions(source);
  } catch (error) {
    failure = `The history cannot be read: ${/** @type {Error} */ (error).message}`;
    if (model) setTimeout(load, RETRY_MS); // it is followed no more
    connected = false;
    return schedule();
  }
  follow();
  if (model.document.source !== "live" || !source.served) return;
  const last = () => Math.max(model.revisions[model.length - 1]?.r ?? 0, model.document.coverage?.end ?? 0);
  const renew = (/** @type {(data: any) => void} */ change) => (/** @type {any} */ data) => {
    change(data);
    scheduleLater();
  };
  source.follow(last, {
    revisions: renew((data) => model.append(data)),
    marks: renew((data) => model.mark(data)),
    components: renew((data) => (model.document.components = data)),
    queues: renew((data) => (model.document.queues = data)),
    autoscaler: renew((data) => (model.document.autoscaler = data)),
    reset: () => load(),
  }, renew((data) => (connected = data)));
}

show();
load();
