/** The queues of the scheduler at the newest revision; before it, what the pods' statuses say. */

import { byName } from "./cluster.js";
import { duration } from "./format.js";
import { html, ObjectLink, Section } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Pod, QueuedPod, Queues as Lists } from "./types.js" */

/** @type {Record<string, string>} */
const TITLES = { active: "Active", backoff: "Backoff", unschedulable: "Unschedulable", gated: "Gated", nominated: "Nominated", waiting_on_permit: "Waits for Permit", binding: "Binding" };
const SHOWN_MAX = 200;

/** Return the queues that pods' statuses show. @param {Pod[]} waiting @returns {Lists} */
export function queuesOf(waiting) {
  /** @type {Lists} */
  const lists = { unschedulable: [], gated: [], nominated: [], binding: [], active: [] };
  for (const { key, row, state } of [...waiting].sort((a, b) => byName(a.key, b.key))) {
    const name = state === "gated" || state === "nominated" || state === "binding" ? state : row.reason ? "unschedulable" : "active";
    lists[name].push({ pod: key.slice("Pod ".length), reason: row.message || row.reason, node: row.nominated });
  }
  return lists;
}

/** @param {{app: App}} props */
export function Queues({ app }) {
  const live = app.live && app.model.document.queues;
  const lists = live || queuesOf(app.cluster.waiting);
  const names = Object.keys(TITLES).filter((name) => lists[name]?.length);
  return html`<div>
    <p class="quiet">${live ? "The scheduler's queues now." : "As the statuses of pods show them at this moment."}</p>
    ${names.length ? "" : html`<p class="empty">No pod waits.</p>`}
    ${names.map((name) => html`<${Section} title=${TITLES[name]} count=${lists[name].length} key=${name}>
      <ul class="rows">${lists[name].slice(0, SHOWN_MAX).map((/** @type {QueuedPod} */ each) => html`<li key=${each.pod}>
        <span class="line"><${ObjectLink} app=${app} to=${`Pod ${each.pod}`} text=${each.pod} />${each.node ? html` <span>→ ${each.node}</span>` : ""}
          ${each.seconds === undefined || each.seconds === null ? "" : html`<span class="end">${duration(each.seconds)}</span>`}</span>
        ${each.reason ? html`<span class="quiet">${each.reason}</span>` : ""}</li>`)}</ul>
      ${lists[name].length > SHOWN_MAX ? html`<p class="quiet">and ${lists[name].length - SHOWN_MAX} more</p>` : ""}
    <//>`)}
  </div>`;
}
