/** The nodes with their pods on a canvas: as large as fits, grouped, to be zoomed; keys go from node to node. */

import { amountOf, barsIn, byName, cellAt, columnsMax, fit, grouped, layout, resourcesOf, segments } from "./cluster.js";
import { amount } from "./format.js";
import { HUES } from "./model.js";
import { notes, paint, Theme } from "./paint.js";
import { Component, createRef } from "./vendor/preact.js";
import { html } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Cell, Layout, Node, Pod, Row } from "./types.js" */

const LEGEND_MAX = 12;

/** Return the function that gives a pod its hue at a place. @param {App["model"]} model @param {string} by @param {number} place @returns {(row: Row) => number} */
export function hueBy(model, by, place) {
  const priorities = [...model.priorities].sort((a, b) => a - b);
  if (by === "priority") return (row) => priorities.indexOf(row.priority ?? 0);
  /** @type {Map<string, number>} */
  const known = new Map();
  return ({ owner = "" }) => {
    const hue = known.get(owner) ?? model.hueOf(owner, place);
    known.set(owner, hue);
    return hue;
  };
}

/** Return the legend: texts by hue. @param {App["cluster"]} cluster @param {string} by @returns {[number, string][]} */
export const legend = ({ hues }, by) =>
  [...hues].sort((a, b) => a[0] - b[0]).map(([hue, row]) => [hue, by === "priority" ? `priority ${row.priority ?? 0}` : row.owner || "no owner"]);

/** @extends {Component<{app: App}>} */
export class NodesView extends Component {
  pane = createRef();
  canvas = createRef();
  /** @type {Layout | null} */
  places = null;
  /** @type {Theme | null} */
  theme = null;
  /** @type {string[]} */
  resources = [];
  focused = "";
  themed = "";
  state = { width: 0, height: 0, tip: /** @type {{x: number, y: number, lines: string[]} | null} */ (null), said: "" };

  componentDidMount() {
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(this.pane.current);
    this.measure();
  }

  componentWillUnmount() {
    this.observer?.disconnect();
  }

  componentDidUpdate() {
    this.paint();
  }

  measure() {
    const { clientWidth: width, clientHeight: height } = this.pane.current;
    if (width !== this.state.width || height !== this.state.height) this.setState({ width, height });
  }

  /** Paint what is visible. */
  paint() {
    const { app } = this.props;
    const [canvas, pane] = [this.canvas.current, this.pane.current];
    if (!canvas || !this.places) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.state.width - 24, Math.min(this.state.height, window.innerHeight)];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    if (this.themed !== app.ui.scheme) this.theme = null;
    this.themed = app.ui.scheme;
    this.theme ??= new Theme(document.documentElement);
    const pen = canvas.getContext("2d");
    const top = Math.max(pane.scrollTop - 12, 0);
    canvas.style.transform = `translateY(${top}px)`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.translate(0, -top);
    const wanted = app.ui.filter.toLowerCase();
    const dim = (/** @type {Pod} */ pod) => wanted !== "" && !`${pod.key} ${pod.row.owner ?? ""}`.toLowerCase().includes(wanted);
    paint(pen, this.theme, this.places, { resources: this.resources, selected: app.ui.selected, focused: this.focused, dim }, top, height);
  }

  /** Return the cell and the pod under the pointer. @param {MouseEvent} event @returns {{cell?: Cell, pod?: Pod, resource?: string}} */
  under(event) {
    const area = this.canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - area.left, event.clientY - area.top + Math.max(this.pane.current.scrollTop - 12, 0)];
    const cell = this.places ? cellAt(this.places, x, y) : undefined;
    if (!cell) return {};
    const index = barsIn(cell, this.resources.length).findIndex((bar) => y >= bar.y && y < bar.y + bar.height);
    if (index < 0) return { cell };
    const [bar, resource] = [barsIn(cell, this.resources.length)[index], this.resources[index]];
    const share = (x - bar.x) / bar.width;
    const found = segments(cell.node, resource).findLast((each) => share >= each.from && share < each.to);
    return { cell, pod: found?.pod, resource };
  }

  /** @param {MouseEvent} event */
  hover = (event) => {
    const { cell, pod } = this.under(event);
    const node = cell?.node;
    const lines = pod ? podLines(pod) : node ? nodeLines(node, this.resources) : null;
    this.setState({ tip: lines && { x: Math.min(event.clientX + 14, window.innerWidth - 330), y: event.clientY + 14, lines } });
  };

  /** @param {KeyboardEvent} event */
  keys = (event) => {
    const cells = this.places?.cells ?? [];
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(this.places?.columns ?? 1), ArrowDown: this.places?.columns ?? 1 }[event.key];
    const at = cells.findIndex((each) => each.node.key === this.focused);
    if (by !== undefined && cells.length) {
      const cell = cells[Math.min(Math.max(at + by, 0), cells.length - 1)];
      this.focused = cell.node.key;
      if (cell.y < this.pane.current.scrollTop || cell.y + cell.height > this.pane.current.scrollTop + this.state.height)
        this.pane.current.scrollTop = cell.y - 20;
      this.setState({ said: nodeLines(cell.node, this.resources).join(", ") });
    } else if (event.key === "Enter" && at >= 0) this.props.app.select(cells[at].node.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  render() {
    const { app } = this.props;
    const { ui, cluster } = app;
    const { width, height, tip, said } = this.state;
    this.resources = resourcesOf(cluster.nodes);
    const groups = grouped(cluster.nodes, ui.group);
    const [inner, bars] = [width - 24, this.resources.length];
    const columns = ui.zoom || fit(groups, inner, height - 24, bars);
    this.places = width ? layout(groups, inner, columns, bars, ui.zoom ? null : height - 24) : null;
    const shown = legend(cluster, ui.colour);
    const zoomTo = (/** @type {number} */ to) => app.set({ zoom: Math.min(Math.max(Math.round(to), 1), columnsMax(inner)) });
    return html`<section class="nodes panel" aria-label="Nodes">
      <div class="bar">
        <h2>Nodes <span class="count">${cluster.nodes.length}</span></h2>
        <label>Colour <select value=${ui.colour} onChange=${(/** @type {any} */ event) => app.set({ colour: event.target.value })}>
          <option value="owner">owner</option><option value="priority">priority</option></select></label>
        <label>Group <select value=${ui.group} onChange=${(/** @type {any} */ event) => app.set({ group: event.target.value })}>
          <option value="">none</option><option value="group">node group</option><option value="zone">zone</option></select></label>
        <label class="grow"><span class="sr">Highlight pods</span><input type="search" placeholder="Highlight pods…" value=${ui.filter}
          onInput=${(/** @type {any} */ event) => app.set({ filter: event.target.value })} /></label>
        <span class="zoom" role="group" aria-label="Zoom">
          <button title="Smaller" aria-label="Smaller nodes" onClick=${() => zoomTo(columns * 1.4 + 0.5)}>−</button>
          <button title="All nodes at once" aria-pressed=${!ui.zoom} onClick=${() => app.set({ zoom: 0 })}>Fit</button>
          <button title="Larger" aria-label="Larger nodes" onClick=${() => zoomTo(columns / 1.4 - 0.5)}>+</button>
        </span>
      </div>
      <div class="pane" ref=${this.pane} tabindex="0" role="application" onScroll=${() => this.paint()} onKeyDown=${this.keys}
        aria-label=${`${cluster.nodes.length} nodes with their pods; arrow keys go from node to node, Enter selects`}
        onClick=${(/** @type {MouseEvent} */ event) => {
          const { cell, pod } = this.under(event);
          if (cell) app.select(pod?.key ?? cell.node.key);
        }}>
        <div class="area" style=${{ height: `${this.places?.height ?? 0}px` }}>
          <canvas ref=${this.canvas} onMouseMove=${this.hover} onMouseLeave=${() => this.setState({ tip: null })} aria-hidden="true"></canvas>
        </div>
        ${cluster.nodes.length ? "" : html`<p class="empty">There are no nodes at this moment.</p>`}
      </div>
      <ul class="legend" aria-label="Legend">
        ${shown.slice(0, LEGEND_MAX).map(([hue, text]) => html`<li><i class=${`swatch hue${hue % HUES} ${hue >= HUES ? "dotted" : ""}`}></i><span title=${text}>${text.slice(text.indexOf("/") + 1)}</span></li>`)}
        ${shown.length > LEGEND_MAX ? html`<li class="quiet">and ${shown.length - LEGEND_MAX} more</li>` : ""}
        <li class="break"></li><li><i class="swatch nominated"></i>nominated</li><li><i class="swatch binding"></i>waits in PreBind</li>
        <li><i class="swatch leaving"></i>leaves</li><li><i class="swatch cordoned"></i>cordoned node</li><li><i class="mark">▶</i>resize runs</li><li><i class="mark">▷</i>deferred</li>
      </ul>
      <p class="sr" aria-live="polite">${said}</p>
      ${tip && html`<div class="tip" style=${{ left: `${tip.x}px`, top: `${tip.y}px` }}>${tip.lines.map((line, index) => html`<div class=${index ? "" : "strong"}>${line}</div>`)}</div>`}
    </section>`;
  }
}

/** @param {Pod} pod @returns {string[]} */
function podLines({ key, row, state }) {
  const asked = [`cpu ${amount("cpu", row.cpu ?? 0)}`, `memory ${amount("memory", row.memory ?? 0)}`];
  for (const [name, count] of Object.entries(row.devices ?? {})) asked.push(`${name} ${count}`);
  return [
    key,
    `${state}${row.node ? ` on ${row.node}` : row.nominated ? ` to ${row.nominated}` : ""}, priority ${row.priority ?? 0}`,
    asked.join(", "),
    ...(row.resize ? [`resize ${row.resize}${row.desired ? ` to cpu ${amount("cpu", row.desired.cpu ?? 0)}, memory ${amount("memory", row.desired.memory ?? 0)}` : ""}`] : []),
    ...(row.owner ? [row.owner] : []),
    ...(row.message ? [row.message] : []),
  ];
}

/** @param {Node} node @param {string[]} resources @returns {string[]} */
function nodeLines(node, resources) {
  const used = (/** @type {string} */ name) => node.pods.reduce((sum, pod) => sum + amountOf(pod.row, name, true), 0);
  const place = [node.row.zone, node.row.group].filter(Boolean).join(", ");
  return [
    node.key,
    ...resources.filter((name) => amountOf(node.row, name)).map((name) => `${name} ${amount(name, used(name))} of ${amount(name, amountOf(node.row, name))}`),
    ...(place ? [place] : []),
    ...notes(node),
    ...(node.nominated.length ? [`nominated: ${node.nominated.map((pod) => pod.name).sort(byName).join(", ")}`] : []),
  ];
}

