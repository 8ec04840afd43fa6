/** Actions on an object, a component or the cluster: each shows its command, and runs it with the page's token. */

import { Component } from "./vendor/preact.js";
import { html } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Action } from "./types.js" */

/** @type {Action[]} */
let known = [];
/** @param {App["source"]} source */
export async function loadActions(source) {
  known = await source.actions().catch(() => []);
}

/** Return whether objects of a kind have actions. @param {string} kind */
export const hasActions = (kind) => known.some((each) => each.on === kind);

/** Return an action whose choices, if some have the target's name (those of failpoints do), are only these. @param {Action} action @param {string} target @returns {Action} */
export function narrowed(action, target) {
  const own = (/** @type {string[] | undefined} */ choices) => choices?.filter((each) => each.startsWith(`${target.split("-", 1)[0]}.`));
  return { ...action, fields: action.fields.map((field) => (own(field.choices)?.length ? { ...field, choices: own(field.choices) } : field)) };
}

/** Return the values with which an action's fields begin. @param {Action} action @returns {Record<string, string>} */
export const initial = (action) => Object.fromEntries(action.fields.map((field) => [field.name, field.value || field.choices?.[0] || ""]));

/** `off`: the target does not exist, or not at the chosen moment; what an action printed stays until it is closed. @extends {Component<{app: App, on: string, target: string, title?: string, off?: boolean}>} */
export class Actions extends Component {
  state = { open: "", fields: /** @type {Record<string, string>} */ ({}), command: "", output: "", failed: false, busy: false, ran: false };
  asked = 0;

  /** @param {{target: string}} former */
  componentDidUpdate(former) {
    if (former.target !== this.props.target) this.setState({ open: "" });
  }

  /** @param {Action} action */
  open(action) {
    if (this.state.open === action.name) return this.setState({ open: "" });
    const fields = initial(action);
    this.setState({ open: action.name, fields, command: "", output: "", failed: false, ran: false });
    this.send(action.name, fields, true);
  }

  /** @param {string} name @param {Record<string, string>} fields @param {boolean} dry */
  async send(name, fields, dry) {
    const asked = ++this.asked;
    if (!dry) this.setState({ busy: true, ran: true });
    try {
      const { command, output, ok } = await this.props.app.source.act(name, this.props.target, fields, dry);
      if (asked === this.asked) this.setState({ command, output: output ?? "", failed: ok === false, busy: false });
    } catch (error) {
      if (asked === this.asked) this.setState({ output: String(/** @type {Error} */ (error).message), failed: true, busy: false });
    }
  }

  render() {
    const { on, title, off } = this.props;
    const { open, fields, command, output, failed, busy, ran } = this.state;
    const actions = known.filter((each) => each.on === on).map((each) => narrowed(each, this.props.target));
    const action = actions.find((each) => each.name === open);
    if (!actions.length) return "";
    if (off) return action && ran ? html`<div class="actions off"><pre class="command">${command}</pre><pre class=${failed ? "bad" : "done"} role="status">${busy ? "Running…" : output}</pre></div>` : "";
    const change = (/** @type {string} */ name, /** @type {string} */ value) => {
      const changed = { ...fields, [name]: value };
      this.setState({ fields: changed });
      this.send(open, changed, true);
    };
    const body = html`<div class="buttons" role="group" aria-label="Actions">${actions.map((each) => html`<button key=${each.name} aria-expanded=${each.name === open} onClick=${() => this.open(each)}>${each.title}</button>`)}</div>
      ${action && html`<form onSubmit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        this.send(open, fields, false);
      }}>
        ${action.fields.map((field) => {
          const input = { value: fields[field.name], name: field.name, onInput: (/** @type {any} */ event) => change(field.name, event.target.value) };
          return html`<label key=${field.name}>${field.label}
            ${field.kind === "choice" ? html`<select ...${input}>${field.choices?.map((each) => html`<option>${each}</option>`)}</select>`
              : field.kind === "yaml" ? html`<textarea rows="10" spellcheck="false" ...${input}></textarea>`
              : html`<input type=${field.kind === "number" ? "number" : "text"} step="any" ...${input} />`}</label>`;
        })}
        <pre class="command" aria-label="The command that this equals">${command || "…"}</pre>
        <button class="run" disabled=${busy || !command}>${busy ? "Running…" : "Run"}</button>
        ${output && html`<pre class=${failed ? "bad" : command ? "done" : "hint"} role="status">${output}</pre>`}
      </form>`}`;
    if (on === "component") return html`<details class="actions"><summary>Actions</summary>${body}</details>`;
    return html`<div class="actions">${title ? html`<h3>${title}</h3>` : ""}${body}</div>`;
  }
}
