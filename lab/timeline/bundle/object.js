/** The selected object at the chosen moment: what it is, its history, why it is so, and the object itself. */

import { Actions, hasActions } from "./actions.js";
import { amount, clock } from "./format.js";
import { readiness } from "./paint.js";
import { Component } from "./vendor/preact.js";
import { breakable, html, ObjectLink } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Details, Node, Revision, Row } from "./types.js" */

const REST_MS = 120;
/** A longer value has a line of its own. */
const WIDE = 20;
const HEADLINE = /^revision (\d+),/;

/** @typedef {{revision: number, text: string, lines: string[]}} Entry */

/** Return the entries of the lines that `nominee history` prints: a headline, and indented lines below it. @param {string[]} lines @returns {Entry[]} */
export function entriesOf(lines) {
  /** @type {Entry[]} */
  const found = [];
  for (const line of lines)
    if (line.startsWith("    ") && found.length) found[found.length - 1].lines.push(line);
    else found.push({ revision: Number(HEADLINE.exec(line)?.[1] ?? 0), text: line, lines: [] });
  return found;
}

/** @param {Row} row @param {string} kind @param {Node} [node] @returns {[string, string][]} */
function facts(row, kind, node) {
  const of = (/** @type {"cpu" | "memory" | "pods"} */ name) => `${node ? `${amount(name, node.used[name])} of ` : ""}${amount(name, row[name] ?? 0)}`;
  /** @type {[string, string | undefined][]} */
  const all =
    kind === "Pod"
      ? [
          ["node", row.node], ["nominated", row.nominated], ["priority", String(row.priority ?? 0)], ["owner", row.owner],
          ["cpu", amount("cpu", row.cpu ?? 0)], ["memory", amount("memory", row.memory ?? 0)],
          ["resize", row.resize && row.resize + (row.desired ? ` to cpu ${amount("cpu", row.desired.cpu ?? 0)}, memory ${amount("memory", row.desired.memory ?? 0)}` : "")],
        ]
      : kind === "Node"
        ? [
            ["cpu", of("cpu")], ["memory", of("memory")], ["pods", of("pods")],
            ["zone", row.zone], ["group", row.group], ["version", row.version], ["taints", row.taints?.join(", ")],
          ]
        : Object.entries(row.rows ?? {});
  for (const [name, value] of Object.entries({ ...row.devices, ...row.conditions })) all.push([name, String(value)]);
  return /** @type {[string, string][]} */ (all.filter(([, value]) => value));
}

/** @extends {Component<{app: App}>} */
export class ObjectPanel extends Component {
  state = { details: /** @type {Details} */ ({}), entries: /** @type {Entry[] | null} */ (null), why: /** @type {{decisions: string[], explain: string[]} | null} */ (null), error: "" };
  asked = "";
  waiting = 0;

  componentDidMount() {
    this.load();
  }

  componentDidUpdate() {
    this.load();
  }

  /** Return the object's last revision up to the moment, and the newest. @returns {[Revision | undefined, Revision | undefined]} */
  revisions() {
    const { model, ui, place } = this.props.app;
    const places = model.places.get(ui.selected) ?? [];
    const at = places.findLast((each) => each <= place);
    return [at === undefined ? undefined : model.revisions[at - 1], model.revisions[(places[places.length - 1] ?? 0) - 1]];
  }

  /** Ask for what belongs to the object and the moment; while the moment runs along, once it rests. */
  load() {
    const { app } = this.props;
    const key = app.ui.selected;
    const [revision, newest] = this.revisions();
    const asked = `${key} ${revision?.r} ${newest?.r}`;
    if (!key || asked === this.asked) return;
    const other = !this.asked.startsWith(key + " ");
    this.asked = asked;
    if (other) this.setState({ details: {}, entries: null, why: null, error: "" });
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.ask(asked, revision, newest), other ? 0 : REST_MS);
  }

  /** @param {string} asked @param {Revision | undefined} revision @param {Revision | undefined} newest */
  ask(asked, revision, newest) {
    const { app } = this.props;
    const key = app.ui.selected;
    if (asked !== this.asked) return;
    const number = app.model.numberOf(app.place);
    const parts = [
      app.source.history(key, newest?.r ?? 0).then((lines) => ({ entries: lines && entriesOf(lines) })),
      revision ? app.source.object(key, revision.r).then((details) => ({ details })) : Promise.resolve({ details: {} }),
      key.startsWith("Pod ") ? app.source.why(key, number).then((why) => ({ why })) : Promise.resolve({ why: null }),
    ];
    for (const part of parts)
      part.then(
        (found) => asked === this.asked && this.setState(/** @type {any} */ ({ ...found, error: "" })),
        (error) => asked === this.asked && this.setState({ error: String(error.message) }),
      );
  }

  render() {
    const { app } = this.props;
    const key = app.ui.selected;
    if (!key) return html`<p class="empty">Select a node or a pod: its history, the scheduler's decisions and the object are shown here.</p>`;
    const { details, why, error } = this.state;
    const [revision] = this.revisions();
    const row = revision?.row;
    const pod = [...app.cluster.waiting, ...app.cluster.nodes.flatMap((node) => node.pods)].find((each) => each.key === key);
    const kind = key.slice(0, key.indexOf(" "));
    const node = kind === "Node" ? app.cluster.nodes.find((each) => each.key === key) : undefined;
    const pods = node ? [...node.pods, ...node.nominated] : [];
    return html`<article class="object">
      <h2 id="selected">${key}</h2>
      <p class="chips">${row ? html`<span class="chip state">${kind === "Node" ? readiness(row) : (pod?.state ?? row.phase ?? "exists")}</span>` : html`<span class="chip off">${revision ? "deleted" : "does not exist yet"}</span>`}
        ${row?.unschedulable ? html`<span class="chip warn">cordoned</span>` : ""}
        ${revision ? html`<span class="quiet">since revision ${revision.r}, ${clock(revision.t)}</span>` : ""}</p>
      ${row?.message ? html`<p class="message">${row.reason}: ${row.message}</p>` : ""}
      ${row && !app.live && hasActions(kind) ? html`<p class="quiet past">Actions change the object as it is now: <button class="link" onClick=${() => app.seek(null)}>go to the newest revision</button></p>` : ""}
      <${Actions} app=${app} on=${kind} target=${key.replace(" ", "/")} off=${!row || !app.live} />
      ${row ? html`<dl>${facts(row, kind, node).map(([name, value]) => html`<div class=${value.length > WIDE ? "wide" : ""}><dt>${name}</dt><dd>${name === "node" || name === "nominated" ? html`<${ObjectLink} app=${app} to=${`Node ${value}`} text=${value} />` : breakable(value)}</dd></div>`)}</dl>` : ""}
      ${error ? html`<p class="bad" role="alert">${error}</p>` : ""}
      <${Lines} title="Changed fields" lines=${details.changes} open />
      ${why ? html`<${Lines} title="Why: the scheduler's decisions" lines=${why.decisions} open /><${Lines} title="Explain at this moment" lines=${why.explain} open table />` : ""}
      ${pods.length ? html`<details><summary>Pods <span class="count">${pods.length}</span></summary><ul class="rows">${pods.map((each) => html`<li key=${each.key}><span class="line"><${ObjectLink} app=${app} to=${each.key} text=${each.key.slice(4)} /><span class="end">${each.state}</span></span></li>`)}</ul></details>` : ""}
      ${this.history(revision)}
      <${Lines} title="The object after it" lines=${details.object} />
    </article>`;
  }

  /** @param {Revision | undefined} revision */
  history(revision) {
    const { app } = this.props;
    const entries = this.state.entries ?? this.own();
    if (!entries.length) return "";
    return html`<details open><summary>History <span class="count">${entries.length}</span></summary><ol class="history">${entries.map((each) => {
      const at = each.revision > 0 && each.revision === revision?.r;
      const later = each.revision > (revision?.r ?? 0);
      return html`<li class=${at ? "at" : later ? "future" : ""} aria-current=${at ? "true" : undefined} data-revision=${each.revision}>
        ${each.revision ? html`<button class="link" onClick=${() => app.seek(app.model.placeOfRevision(each.revision))}>${each.text}</button>` : html`<span>${each.text}</span>`}
        ${each.lines.length ? html`<pre>${each.lines.map((line) => line + "\n")}</pre>` : ""}</li>`;
    })}</ol></details>`;
  }

  /** Return the entries that the document itself has, for a page without a server. @returns {Entry[]} */
  own() {
    const { model, ui, source } = this.props.app;
    return (model.places.get(ui.selected) ?? []).map((place) => {
      const { r, t, w, row, state } = model.revisions[place - 1];
      const { name, changes = [] } = source.inline?.details?.[r] ?? {};
      const text = name ?? `revision ${r}, ${clock(t)}: ${state ? "the state at the beginning" : w || (row ? "written" : "deleted")}`;
      return { revision: r, text, lines: changes.map((line) => `    ${line}`) };
    });
  }
}

/** A block of lines that opens; those of a table are not wrapped. @param {{title: string, lines?: string[], open?: boolean, table?: boolean}} props */
const Lines = ({ title, lines, open, table }) =>
  lines?.length ? html`<details open=${open}><summary>${title} <span class="count">${lines.length}</span></summary><pre tabindex="0" class=${table ? "table" : ""}>${lines.map((line) => line + "\n")}</pre></details>` : "";
