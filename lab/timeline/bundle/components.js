/** The components with versions, gates, leader, health, failpoints and faults; and the marks of the time axis. */

import { Actions } from "./actions.js";
import { clock, counted } from "./format.js";
import { MARKS } from "./timeline.js";
import { html, ObjectLink, Section } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Component, TimeLine } from "./types.js" */

const MARKS_MAX = 500;

/** @param {Component} component */
function sign({ state, health }) {
  if (state === "paused") return ["❚❚", "warn", "paused"];
  if (state && state !== "running" && state !== "ready") return ["✖", "bad", state];
  return health && health !== "ok" ? ["◆", "warn", health] : ["●", "good", state || "running"];
}

/** Return the state of a document's source: of a followed cluster, or which other source it is. @param {TimeLine} document @param {boolean} connected */
export function badgeOf({ source, components }, connected) {
  if (source !== "live") return source;
  const isDown = components?.length && components.every((each) => each.state === "down");
  return !connected ? "reconnecting" : isDown ? "down" : "live";
}

/** @param {{app: App}} props */
export function Components({ app }) {
  const components = app.model.document.components ?? [];
  return html`<div>
    <${Actions} app=${app} on="cluster" target="" title="Cluster" />
    <p class="quiet">${app.live ? "" : app.model.document.source === "live" ? "As they are now, not at the chosen moment." : "As they are at the end of the history."}</p>
    ${components.length ? "" : html`<p class="empty">The history has no components.</p>`}
    <ul class="rows">${components.map((each) => {
      const [shape, colour, text] = sign(each);
      return html`<li key=${each.name} class="component"><span class="line"><span class=${`sign ${colour}`} aria-hidden="true">${shape}</span><b>${each.name}</b>
        ${each.leader ? html`<span class="chip">leader</span>` : each.leader === false ? html`<span class="chip off">standby</span>` : ""}
        ${each.restarts ? html`<span class="quiet">${counted(each.restarts, "restart")}</span>` : ""}<span class="end">${each.version}</span></span>
        <span class=${colour === "good" ? "quiet" : colour}>${text}</span>
        ${Object.entries(each.gates ?? {}).map(([name, on]) => html`<span class="chip">${name}=${String(on)}</span>`)}
        ${(each.failpoints ?? []).map((name) => html`<span class="chip warn">failpoint ${name}</span>`)}
        ${(each.faults ?? []).map((name) => html`<span class="chip warn">fault ${name}</span>`)}
        <${Actions} app=${app} on="component" target=${each.name} /></li>`;
    })}</ul>
  </div>`;
}

/** @param {{app: App}} props */
export function Marks({ app }) {
  const { model } = app;
  const marks = model.marks.slice(-MARKS_MAX);
  return html`<${Section} title="Marks" count=${model.marks.length}>
    ${marks.length ? "" : html`<p class="empty">No restart, crash, kill, fault or preemption.</p>`}
    <ul class="rows">${marks.map((mark) => {
      const [shape, colour] = MARKS[mark.kind] ?? MARKS.step;
      const place = model.placeOfTime(mark.t);
      return html`<li class=${place <= app.place ? "" : "future"}><span class="line"><span class=${`sign ${colour}`} aria-hidden="true">${shape}</span>
        <button class="link" onClick=${() => app.seek(place)}>${mark.kind}</button><span class="end">${clock(mark.t)}</span></span>
        <span>${model.named(mark.text)}</span>${mark.object ? html`<${ObjectLink} app=${app} to=${mark.object} />` : ""}</li>`;
    })}</ul><//>`;
}
