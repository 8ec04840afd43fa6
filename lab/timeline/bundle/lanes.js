/** The followed objects below the time axis: how long each of their states and conditions lasted. */

import { clock } from "./format.js";
import { html } from "./view.js";

/** @import { App } from "./view.js" */

const NAMED = new Set(["nominated", "node", "terminating", "phase"]);

/** Return the class of a bar. @param {string} name @param {string} value */
export function sortOf(name, value) {
  if (name === "phase") return `phase ${value.toLowerCase()}`;
  if (NAMED.has(name)) return name;
  const status = value.split(" ", 1)[0];
  return ["True", "False", "Unknown"].includes(status) ? status.toLowerCase() : "other";
}

/** Return the part of the axis in which an object changed, with some room around it. @param {App["model"]} model @param {string} key @returns {[number, number]} */
export function spanOf(model, key) {
  const places = model.places.get(key) ?? [];
  const [first, last] = [model.timeOf(places[0]), model.timeOf(places[places.length - 1])];
  const room = Math.max((last - first) * 0.15, 0.05);
  return [Math.max(first - room, model.span[0]), Math.min(last + room, model.span[1])];
}

/** @param {{app: App, box: {left: number, width: number}}} props */
export function Lanes({ app, box }) {
  const { model, ui } = app;
  const keys = [...new Set([...ui.followed, ...(ui.selected && model.places.has(ui.selected) ? [ui.selected] : [])])];
  if (!keys.length || !box.width) return "";
  const [begin, end] = ui.range ?? model.span;
  const at = (/** @type {number} */ time) => Math.min(Math.max(((time - begin) / (end - begin)) * 100, 0), 100);
  const track = { marginLeft: `${box.left}px`, width: `${box.width}px` };
  const now = app.live ? 100 : at(model.timeOf(app.place));
  return html`<div class="lanes" aria-label="Followed objects">
    ${keys.map((key) => {
      const pinned = ui.followed.includes(key);
      const pin = () => app.set({ followed: pinned ? ui.followed.filter((each) => each !== key) : [...ui.followed, key] });
      const zoom = () => app.set({ range: ui.range ? null : spanOf(model, key) });
      return html`<div class="lane" key=${key}>
        <h3><button class="link" onClick=${() => app.select(key)}>${key}</button>
          <button class="pin" aria-pressed=${pinned} title=${pinned ? "Stop following" : "Keep this lane"} onClick=${pin}>${pinned ? "unfollow" : "follow"}</button>
          <button class="pin" aria-pressed=${Boolean(ui.range)} title="Show the part of the axis in which it changed, or all" onClick=${zoom}>zoom</button></h3>
        <div class="row"><span class="label">revisions</span><div class="track" style=${track}>
          ${(model.places.get(key) ?? []).map((place) => {
            const revision = model.revisions[place - 1];
            const [time, text] = [model.timeOf(place), `revision ${revision.r}, ${clock(revision.t)}: ${revision.w ?? ""}`];
            if (time < begin || time > end) return "";
            const open = () => {
              app.select(key);
              app.seek(place);
            };
            return html`<button class=${`point ${place === app.place ? "on" : ""} ${revision.row ? "" : "deleted"}`} tabindex="-1" style=${{ left: `${at(time)}%` }} title=${text} aria-label=${text} onClick=${open}></button>`;
          })}<i class="now" style=${{ left: `${now}%` }}></i></div></div>
        ${[...model.lane(key)].map(([name, bars]) => html`<div class="row"><span class="label" title=${name}>${name}</span><div class="track" style=${track}>
          ${bars.map((bar) => {
            const [from, to] = [at(bar.begin), at(bar.end ?? end)];
            return to > from || (bar.begin >= begin && bar.begin <= end)
              ? html`<span class=${`span ${sortOf(name, bar.value)}`} style=${{ left: `${from}%`, width: `${to - from}%` }} title=${`${name}: ${bar.value}`}>${bar.value}</span>`
              : "";
          })}<i class="now" style=${{ left: `${now}%` }}></i></div></div>`)}
      </div>`;
    })}
  </div>`;
}
