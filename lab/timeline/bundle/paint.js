/** Paints nodes and pods on a canvas, in the colours of the style sheet. */

import { amountOf, barsIn, detailOf, NAMED, segments } from "./cluster.js";
import { amount } from "./format.js";
import { HUES } from "./model.js";

/** @import { Cell, Layout, Node, Pod, Row, Segment } from "./types.js" */

/** Narrower bars show no single pods. */
const SMALL_BAR = 80;
/** The corners of lower bars are not round: to clip hundreds of them takes most of a drawing's time. */
const ROUNDED_HEIGHT = 12;
const NAMES = ["text", "quiet", "panel", "line", "track", "bad", "warn", "link", "back"];

/** The colours and patterns of a theme, read once. */
export class Theme {
  /** @param {Element} element */
  constructor(element) {
    const style = getComputedStyle(element);
    const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    /** @type {Record<string, string>} */
    this.colour = Object.fromEntries(NAMES.map((name) => [name, read(name)]));
    this.hues = Array.from({ length: HUES }, (_, index) => read(`hue${index}`));
    this.font = getComputedStyle(document.body).fontFamily;
    /** @type {Map<string, CanvasPattern | string>} */
    this.patterns = new Map();
  }

  /** Return the fill of a hue; beyond the number of colours they come again with dots: stripes are for pods that leave. @param {CanvasRenderingContext2D} context @param {number} hue */
  fill(context, hue) {
    const colour = this.hues[hue % HUES];
    return hue < HUES ? colour : this.dotted(context, colour, Math.floor(hue / HUES));
  }

  /** Return a colour with dots. @param {CanvasRenderingContext2D} context @param {string} colour @param {number} radius */
  dotted(context, colour, radius) {
    return this.pattern(context, `dots ${colour} ${radius}`, 4 + 2 * radius, colour, (pen, size) => {
      pen.fillStyle = this.colour.panel;
      for (const [x, y] of [[0.25, 0.25], [0.75, 0.75]]) {
        pen.beginPath();
        pen.arc(x * size, y * size, radius, 0, 2 * Math.PI);
        pen.fill();
      }
    });
  }

  /** Return diagonal stripes. @param {CanvasRenderingContext2D} context @param {string} colour @param {string} ground @param {number} width */
  striped(context, colour, ground, width) {
    return this.pattern(context, `stripes ${colour} ${ground} ${width}`, 4 + 2 * width, ground, (pen, size) => {
      pen.strokeStyle = colour;
      pen.lineWidth = size / 2.2;
      for (const shift of [-size, 0, size]) {
        pen.beginPath();
        pen.moveTo(shift - 1, size + 1);
        pen.lineTo(shift + size + 1, -1);
        pen.stroke();
      }
    });
  }

  /** Return a pattern of square tiles on a ground, drawn once. @param {CanvasRenderingContext2D} context @param {string} name @param {number} size @param {string} ground @param {(pen: CanvasRenderingContext2D, size: number) => void} draw */
  pattern(context, name, size, ground, draw) {
    const known = this.patterns.get(name);
    if (known) return known;
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.fillStyle = ground;
    pen.fillRect(0, 0, size, size);
    draw(pen, size);
    const pattern = context.createPattern(tile, "repeat") ?? ground;
    this.patterns.set(name, pattern);
    return pattern;
  }
}

/** @typedef {{resources: string[], selected: string, focused: string, dim: (pod: Pod) => boolean}} Shown */

/** Paint the part of the nodes that is visible. @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Layout} places @param {Shown} shown @param {number} top @param {number} height */
export function paint(context, theme, places, shown, top, height) {
  context.textBaseline = "middle";
  for (const heading of places.headings) {
    if (heading.y + 30 < top || heading.y > top + height) continue;
    context.font = `600 12px ${theme.font}`;
    context.fillStyle = theme.colour.quiet;
    context.fillText(heading.text, 1, heading.y + 14);
  }
  for (const cell of places.cells)
    if (cell.y + cell.height >= top && cell.y <= top + height) paintNode(context, theme, cell, shown);
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} width @param {number} height @param {number} radius */
function box(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Cell} cell @param {Shown} shown */
function paintNode(context, theme, cell, shown) {
  const { node, x, y, width, height } = cell;
  const detail = detailOf(width);
  const down = node.row.ready !== "True";
  const [bars, radius] = [barsIn(cell, shown.resources.length), detail === "small" ? 2 : 7];
  const chosen = shown.selected === node.key || holds(node, shown.selected);
  box(context, x + 0.5, y + 0.5, width - 1, height - 1, radius);
  context.fillStyle = theme.colour.panel;
  context.fill();
  if (down) {
    context.globalAlpha = 0.13;
    context.fillStyle = theme.colour.bad;
    context.fill();
    context.globalAlpha = 1;
  }
  if (node.row.unschedulable) {
    context.fillStyle = theme.striped(context, theme.colour.track, theme.colour.panel, 3);
    context.fill();
  }
  context.lineWidth = chosen ? 2 : 1;
  context.strokeStyle = chosen || shown.focused === node.key ? theme.colour.link : down ? theme.colour.bad : theme.colour.line;
  context.stroke();
  if (detail !== "small") title(context, theme, cell, down);
  bars.forEach((bar, index) => {
    const resource = shown.resources[index];
    if (!amountOf(node.row, resource)) return;
    if (detail === "full") labels(context, theme, cell, bar, resource);
    paintBar(context, theme, node, bar, resource, shown);
  });
  if (detail === "small" && down) cross(context, theme, x + width - 8, y + 3, 5);
}

/** @param {Node} node @param {string} key */
const holds = (node, key) => node.pods.some((pod) => pod.key === key) || node.nominated.some((pod) => pod.key === key);

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {number} x @param {number} y @param {number} size */
function cross(context, theme, x, y, size) {
  context.strokeStyle = theme.colour.bad;
  context.lineWidth = 1.6;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y);
  context.lineTo(x, y + size);
  context.stroke();
}

/** Return whether a node is ready, in words. @param {Row} row */
export const readiness = ({ ready }) => (ready === "True" ? "Ready" : ready === "False" ? "NotReady" : "Ready unknown");

/** Return what is wrong with a node, or unusual. @param {Node} node @returns {string[]} */
export function notes(node) {
  return [
    ...(node.row.ready === "True" ? [] : [readiness(node.row)]),
    ...(node.row.unschedulable ? ["cordoned"] : []),
    ...Object.keys(node.row.conditions ?? {}).filter((each) => each !== "Ready"),
    ...(node.row.taints ?? []).filter((each) => !each.startsWith("node.kubernetes.io/")),
  ];
}

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Cell} cell @param {boolean} down */
function title(context, theme, cell, down) {
  const { node, x, y, width } = cell;
  const full = detailOf(width) === "full";
  const middle = y + (full ? 18 : 10);
  if (down) cross(context, theme, x + 8, middle - 3.5, 7);
  context.font = `600 ${full ? 13 : 10.5}px ${theme.font}`;
  context.fillStyle = theme.colour.text;
  const start = x + (down ? 21 : full ? 10 : 6);
  const name = clipped(context, node.name, width - (start - x) - 8);
  context.fillText(name, start, middle);
  let right = x + width - 8;
  const left = start + context.measureText(name).width + 8;
  context.font = `500 10.5px ${theme.font}`;
  for (const note of notes(node)) {
    const text = clipped(context, note, Math.min(right - left - 12, 190));
    const size = context.measureText(text).width + 12;
    if (text.length < 4 || right - size < left) break;
    if (!full) break;
    box(context, right - size, middle - 8, size, 16, 8);
    context.fillStyle = theme.colour.back;
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = note.includes("eady") || note.includes("Pressure") ? theme.colour.bad : theme.colour.warn;
    context.stroke();
    context.fillStyle = theme.colour.text;
    context.fillText(text, right - size + 6, middle + 0.5);
    right -= size + 4;
  }
}

/** @typedef {{x: number, y: number, width: number, height: number}} Box */

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Cell} cell @param {Box} bar @param {string} resource */
function labels(context, theme, cell, bar, resource) {
  const { node, x, width } = cell;
  const [wide, middle] = [width >= 340, bar.y + bar.height / 2 + 0.5];
  context.font = `${wide ? 12 : 10.5}px ${theme.font}`;
  context.fillStyle = theme.colour.quiet;
  const label = wide ? resource : resource === "memory" ? "mem" : resource;
  context.fillText(clipped(context, label, bar.x - x - 14), x + 10, middle);
  if (!wide) return;
  const used = node.pods.reduce((sum, pod) => sum + amountOf(pod.row, resource, true), 0);
  context.textAlign = "right";
  context.fillText(`${amount(resource, used)} / ${amount(resource, amountOf(node.row, resource))}`, x + width - 10, middle);
  context.textAlign = "left";
}

/** Return a text that fits, or its beginning with an ellipsis. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = Math.max(Math.floor((text.length * width) / context.measureText(text).width) - 1, 0);
  while (length > 0 && context.measureText(text.slice(0, length) + "…").width > width) length--;
  return length > 0 ? text.slice(0, length) + "…" : "";
}

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Node} node @param {Box} bar @param {string} resource @param {Shown} shown */
function paintBar(context, theme, node, bar, resource, shown) {
  const found = segments(node, resource);
  const wide = bar.width >= SMALL_BAR;
  // Narrow pods have no gaps between them, and no names: a run of them is painted at once.
  const gap = wide && bar.width / Math.max(found.length, 1) > 4 ? 1 : 0;
  const rounded = wide && bar.height >= ROUNDED_HEIGHT;
  context.fillStyle = theme.colour.track;
  if (rounded) {
    context.save();
    box(context, bar.x, bar.y, bar.width, bar.height, Math.min(4, bar.height / 3));
    context.fill();
    context.clip();
  } else context.fillRect(bar.x, bar.y, bar.width, bar.height);
  for (const segment of gap ? found : joined(found, shown)) if (segment.from < 1) paintPod(context, theme, bar, segment, gap, shown, resource);
  if (rounded) context.restore();
}

/** Join neighbours that look the same: thousands of small bars are painted at each step. @param {Segment[]} found @param {Pick<Shown, "selected" | "dim">} shown @returns {Segment[]} */
export function joined(found, shown) {
  const plain = (/** @type {Segment} */ { pod, nominated }) => !nominated && pod.state !== "terminating" && pod.key !== shown.selected;
  const alike = (/** @type {Pod} */ one, /** @type {Pod} */ other) => one.hue === other.hue && (one.state === "starting") === (other.state === "starting") && shown.dim(one) === shown.dim(other);
  /** @type {Segment[]} */
  const runs = [];
  for (const segment of found) {
    const last = runs[runs.length - 1];
    const same = last && plain(last) && plain(segment) && alike(last.pod, segment.pod);
    if (same) {
      last.to = Math.min(segment.to, 1);
      last.many = true;
    } else runs.push({ ...segment, to: Math.min(segment.to, 1) });
  }
  return runs;
}

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Box} bar @param {Segment} segment @param {number} gap @param {Shown} shown @param {string} resource */
function paintPod(context, theme, bar, segment, gap, shown, resource) {
  const { pod } = segment;
  const x = bar.x + segment.from * bar.width;
  const width = Math.max((Math.min(segment.to, 1) - segment.from) * bar.width - gap, 0.75);
  const colour = theme.hues[pod.hue % HUES];
  const selected = pod.key === shown.selected;
  context.globalAlpha = shown.dim(pod) ? 0.15 : 1;
  if (segment.nominated) {
    context.globalAlpha *= 0.28;
    context.fillStyle = colour;
    context.fillRect(x, bar.y, width, bar.height);
    context.globalAlpha = shown.dim(pod) ? 0.15 : 1;
    context.setLineDash(pod.state === "binding" ? [1.5, 1.5] : [4, 2.5]);
    context.lineWidth = bar.height > 8 ? 1.5 : 1;
    context.strokeStyle = theme.colour.text;
    context.strokeRect(x + 0.75, bar.y + 0.75, Math.max(width - 1.5, 0), bar.height - 1.5);
    context.setLineDash([]);
  } else {
    context.fillStyle = pod.state === "terminating" ? theme.striped(context, colour, theme.colour.panel, 2) : theme.fill(context, pod.hue);
    context.fillRect(x, bar.y, width, bar.height);
    if (pod.state === "starting" && bar.height > 8) {
      context.fillStyle = theme.colour.panel;
      context.fillRect(x, bar.y + bar.height - 3, width, 2);
    }
  }
  if (selected) {
    context.lineWidth = 2;
    context.strokeStyle = theme.colour.text;
    context.strokeRect(x + 1, bar.y + 1, Math.max(width - 2, 1), bar.height - 2);
  }
  if (pod.row.resize && !segment.many && width > 9 && bar.height > 6 && (resource === "cpu" || resource === "memory")) resize(context, theme, bar, x, width, pod);
  if (bar.height >= NAMED - 1 && !segment.many) podName(context, theme, bar, x, width, segment);
  context.globalAlpha = 1;
}

/** Mark a resize: a triangle at the pod's end, filled while it runs, hollow while it waits. @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Box} bar @param {number} x @param {number} width @param {Pod} pod */
function resize(context, theme, bar, x, width, pod) {
  const [size, end, middle] = [Math.min(bar.height - 3, 9), x + width - 2, bar.y + bar.height / 2];
  context.beginPath();
  context.moveTo(end - size, middle - size / 2);
  context.lineTo(end, middle);
  context.lineTo(end - size, middle + size / 2);
  context.closePath();
  context.lineWidth = 1.5;
  context.strokeStyle = "#000";
  context.fillStyle = pod.row.resize === "InProgress" ? "#000" : "#fff";
  context.fill();
  context.stroke();
}

/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Box} bar @param {number} x @param {number} width @param {Segment} segment */
function podName(context, theme, bar, x, width, segment) {
  const { pod } = segment;
  const room = width - 12 - (pod.row.resize ? 11 : 0);
  if (room < 34) return;
  context.font = `500 11.5px ${theme.font}`;
  const text = clipped(context, pod.name, room);
  const plain = !segment.nominated && pod.state !== "terminating" && pod.hue < HUES;
  if (!plain && !segment.nominated) {
    context.fillStyle = theme.colour.panel;
    context.fillRect(x + 4, bar.y + 3, context.measureText(text).width + 5, bar.height - 6);
  }
  context.fillStyle = plain ? "#000" : theme.colour.text;
  context.fillText(text, x + 6, bar.y + bar.height / 2 + 0.5);
}
