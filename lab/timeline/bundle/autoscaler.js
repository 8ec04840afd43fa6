/** The autoscaler at the newest revision; before it, the node groups as the nodes' labels show them. */

import { grouped } from "./cluster.js";
import { duration } from "./format.js";
import { html, ObjectLink, Section } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Autoscaler as Status } from "./types.js" */

/** @param {{app: App}} props */
export function Autoscaler({ app }) {
  const live = app.live ? app.model.document.autoscaler : null;
  /** @type {Status} */
  const status = live ?? { groups: grouped(app.cluster.nodes, "group").map(([name, nodes]) => ({ name, size: nodes.length })) };
  const after = (/** @type {number | null | undefined} */ seconds) => (seconds === null || seconds === undefined ? "" : html`<span class="end">${duration(seconds)}</span>`);
  return html`<div>
    <p class="quiet">${live ? "The autoscaler's state now." : "As the labels of nodes show it; the autoscaler's own state is known at the live end."}</p>
    <${Section} title="Node groups" count=${status.groups?.length ?? 0}>
      ${status.groups?.length ? "" : html`<p class="empty">There is no node group.</p>`}
      <ul class="rows">${status.groups?.map((group) => {
        const most = group.max ?? Math.max(group.size, 1);
        return html`<li key=${group.name}><span class="line"><b>${group.name}</b><span class="end">${group.size}${group.upcoming ? ` + ${group.upcoming}` : ""}${group.max === undefined ? "" : ` of ${group.min ?? 0}–${group.max}`}</span></span>
          <span class="meter" role="img" aria-label=${`${group.size} of ${most}`}><i style=${{ width: `${(100 * group.size) / most}%` }}></i><i class="upcoming" style=${{ width: `${(100 * (group.upcoming ?? 0)) / most}%` }}></i></span></li>`;
      })}</ul><//>
    ${status.upcoming?.length ? html`<${Section} title="Upcoming nodes" count=${status.upcoming.length}><ul class="rows">
      ${status.upcoming.map((each) => html`<li><span class="line"><${ObjectLink} app=${app} to=${`Node ${each.node}`} text=${each.node} /> ${each.group ?? ""}${after(each.seconds)}</span></li>`)}</ul><//>` : ""}
    ${status.unneeded?.length ? html`<${Section} title="Unneeded nodes" count=${status.unneeded.length}><ul class="rows">
      ${status.unneeded.map((each) => html`<li><span class="line"><${ObjectLink} app=${app} to=${`Node ${each.node}`} text=${each.node} />${after(each.seconds)}</span><span class="quiet">${each.reason}</span></li>`)}</ul><//>` : ""}
    ${Object.keys(status.unremovable ?? {}).length ? html`<${Section} title="Not removable"><ul class="rows">
      ${Object.entries(status.unremovable ?? {}).map(([node, reason]) => html`<li><span class="line"><${ObjectLink} app=${app} to=${`Node ${node}`} text=${node} /></span><span class="quiet">${String(reason)}</span></li>`)}</ul><//>` : ""}
    ${status.error ? html`<p class="bad">${status.error}</p>` : ""}
  </div>`;
}
