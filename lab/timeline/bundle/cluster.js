/** The nodes of a state with their pods, and where they are on the canvas. Pure. */

import { counted } from "./format.js";
import { podState } from "./model.js";

/** @import { State } from "./model.js" */
/** @import { Cell, Cluster, Heading, Layout, Node, Pod, Row, Segment } from "./types.js" */

const HEADING = 28;

/** Return the nodes with their pods, and the pods on no node. @param {State} state @param {(row: Row) => number} hue */
export function clusterOf(state, hue) {
  /** @type {Map<string, Node>} */
  const nodes = new Map();
  /** @type {Cluster} */
  const cluster = { nodes: [], waiting: [], counts: {}, hues: new Map() };
  for (const [key, { k, n, row }] of state)
    if (k === "Node" && row)
      nodes.set(n, { key, name: n, row, pods: [], nominated: [], used: { cpu: 0, memory: 0, pods: 0 } });
  for (const [key, revision] of state) {
    const row = revision.row;
    if (revision.k !== "Pod" || !row) continue;
    const pod = { key, name: revision.n, row, state: podState(row), hue: hue(row) };
    cluster.counts[pod.state] = (cluster.counts[pod.state] ?? 0) + 1;
    if (pod.state === "done") continue;
    const node = nodes.get(row.node || row.nominated || "");
    if (!node || !row.node) cluster.waiting.push(pod);
    if (!node) continue;
    if (!cluster.hues.has(pod.hue)) cluster.hues.set(pod.hue, row);
    if (!row.node) node.nominated.push(pod);
    else {
      node.pods.push(pod);
      node.used.cpu += row.cpu ?? 0;
      node.used.memory += row.memory ?? 0;
      node.used.pods += 1;
    }
  }
  cluster.nodes = [...nodes.values()].sort((a, b) => byName(a.name, b.name));
  for (const node of cluster.nodes) node.pods.sort((a, b) => a.hue - b.hue || byName(a.name, b.name));
  return cluster;
}

const collator = new Intl.Collator("en", { numeric: true });
/** Compare names with their numbers. @param {string} a @param {string} b */
export const byName = (a, b) => collator.compare(a, b);

/** Return the resources that have a bar on any of the nodes. @param {Node[]} nodes */
export function resourcesOf(nodes) {
  const devices = new Set(nodes.flatMap((node) => Object.keys(node.row.devices ?? {})));
  return ["cpu", "memory", "pods", ...[...devices].sort()];
}

/** Return the amount of a resource in a row. @param {Row} row @param {string} resource @param {boolean} [pod] */
export function amountOf(row, resource, pod) {
  if (resource === "cpu" || resource === "memory") return row[resource] ?? 0;
  if (resource === "pods") return pod ? 1 : (row.pods ?? 0);
  return row.devices?.[resource] ?? 0;
}

/**
 * Return the parts of a node's bar. Nominated pods follow the bound ones; where these leave no room they lie over the
 * end of the bar, where the victims are.
 * @param {Node} node @param {string} resource @returns {Segment[]}
 */
export function segments(node, resource) {
  const capacity = amountOf(node.row, resource);
  if (!capacity) return [];
  /** @type {Segment[]} */
  const found = [];
  let at = 0;
  for (const pod of node.pods) {
    const to = at + amountOf(pod.row, resource, true) / capacity;
    if (to > at) found.push({ pod, from: at, to, nominated: false });
    at = to;
  }
  for (const pod of node.nominated) {
    const share = amountOf(pod.row, resource, true) / capacity;
    const from = Math.max(Math.min(at, 1 - share), 0);
    if (share) found.push({ pod, from, to: from + share, nominated: true });
    at = from + share;
  }
  return found;
}

/** Return the nodes in groups, by the zone or the node group. @param {Node[]} nodes @param {string} by @returns {[string, Node[]][]} */
export function grouped(nodes, by) {
  /** @type {Map<string, Node[]>} */
  const groups = new Map();
  for (const node of nodes) {
    const name = by === "zone" ? node.row.zone || "no zone" : by === "group" ? node.row.group || "no node group" : "";
    const group = groups.get(name);
    if (group) group.push(node);
    else groups.set(name, [node]);
  }
  return [...groups].sort((a, b) => byName(a[0], b[0]));
}

/** Return how much of a node a width shows. @param {number} width @returns {Layout["detail"]} */
export const detailOf = (width) => (width >= 210 ? "full" : width >= 84 ? "compact" : "small");

/** The measures of a node by its detail: space above the bars, between them, and the height of a bar, least and most. */
const MEASURES = {
  full: { top: 36, step: 7, end: 5, least: 13, most: 28, gap: 10 },
  compact: { top: 19, step: 2, end: 3, least: 4, most: 18, gap: 5 },
  small: { top: 3, step: 1, end: 2, least: 4, most: 12, gap: 4 },
};
/** Below this width a node has the first bars only. */
const NARROW = 40;
const NARROW_BARS = 2;
/** A bar of this height has names in it. */
export const NAMED = 19;
const WIDTH_MIN = 22;

/** @param {number} width @param {number} bars */
const barsShown = (width, bars) => (width < NARROW ? Math.min(bars, NARROW_BARS) : bars);

/** Return the rectangle of each bar within a cell. @param {Cell} cell @param {number} bars */
export function barsIn(cell, bars) {
  const { top, step, end } = MEASURES[detailOf(cell.width)];
  const count = barsShown(cell.width, bars);
  const height = (cell.height - top - end) / count - step;
  const [left, right] = cell.width >= 340 ? [70, 96] : cell.width >= 210 ? [40, 10] : cell.width >= 84 ? [6, 6] : [3, 3];
  return Array.from({ length: count }, (_, index) => ({
    x: cell.x + left, y: cell.y + top + index * (height + step), width: cell.width - left - right, height,
  }));
}

/**
 * Return the places of nodes in a number of columns. Bars grow to fill the height, within limits; without one they are
 * high enough for names.
 * @param {[string, Node[]][]} groups @param {number} width @param {number} columns @param {number} bars @param {number | null} fill the height
 */
export function layout(groups, width, columns, bars, fill) {
  const { gap } = MEASURES[detailOf(width / columns)];
  const actual = (width + gap) / columns - gap;
  const detail = detailOf(actual);
  const { top, step, end, least, most } = MEASURES[detail];
  const count = barsShown(actual, bars);
  const rows = groups.reduce((sum, [, nodes]) => sum + Math.ceil(nodes.length / columns), 0);
  const headings_height = groups.reduce((sum, [text]) => sum + (text ? HEADING + 6 : 0), 0);
  const room = fill === null ? NAMED : ((fill - headings_height) / Math.max(rows, 1) - gap - top - end) / count - step;
  const height = top + end + count * (step + Math.min(Math.max(room, least), most));
  /** @type {Cell[]} */
  const cells = [];
  /** @type {Heading[]} */
  const headings = [];
  let y = 0;
  for (const [text, nodes] of groups) {
    if (text) {
      headings.push({ text: `${text} · ${counted(nodes.length, "node")}`, y });
      y += HEADING;
    }
    nodes.forEach((node, index) => {
      const [column, row] = [index % columns, Math.floor(index / columns)];
      cells.push({ node, x: column * (actual + gap), y: y + row * (height + gap), width: actual, height });
    });
    y += Math.ceil(nodes.length / columns) * (height + gap) + (text ? 6 : 0);
  }
  return /** @type {Layout} */ ({ cells, headings, height: Math.max(y - gap, 0), detail, columns });
}

/** Return the most columns in which a node can be seen. @param {number} width */
export const columnsMax = (width) => Math.max(Math.floor(width / (WIDTH_MIN + MEASURES.small.gap)), 1);

/** Return the fewest columns with which all nodes are seen at once. @param {[string, Node[]][]} groups @param {number} width @param {number} height @param {number} bars */
export function fit(groups, width, height, bars) {
  const most = columnsMax(width);
  for (let columns = 1; columns < most; columns++) if (layout(groups, width, columns, bars, 0).height <= height) return columns;
  return most;
}

/** Return the cell at a point. @param {Layout} places @param {number} x @param {number} y @returns {Cell | undefined} */
export const cellAt = (places, x, y) =>
  places.cells.find((each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height);
