/** The time axis: pods by state as a chart, marks, and the chosen moment; and the buttons that move it. */

import { clock, dated } from "./format.js";
import { Lanes } from "./lanes.js";
import { COUNTED, keyOf } from "./model.js";
import { Component, createRef } from "./vendor/preact.js";
import uPlot from "./vendor/uplot.js";
import { html } from "./view.js";

/** @import { App } from "./view.js" */
/** @import { Mark } from "./types.js" */

const HEIGHT = 124;
const MARK_Y = 9;
const NEAR = 7;
const COUNTS = [1, 2, 5].flatMap((each) => [1, 10, 100, 1000, 10000, 100000].map((ten) => each * ten)).sort((a, b) => a - b);
/** Marks of one kind that are closer are drawn as one. */
const CLOSE = 7;
/** The shape and the colour of a mark, so that neither is needed alone. @type {Record<string, [string, string]>} */
export const MARKS = {
  start: ["▲", "good"], restart: ["▲", "link"], crash: ["✖", "bad"], kill: ["✖", "warn"], fault: ["◆", "warn"], failpoint: ["◆", "hue4"],
  preemption: ["▼", "hue4"], violation: ["■", "bad"], step: ["●", "quiet"], log: ["·", "quiet"],
};

/**
 * Return the values of the chart in a part of the axis, as running totals: the last of COUNTED below all. Of the
 * revisions in one column of pixels it has the last: a screen shows no more, and a long history costs no more than it.
 * @param {App["model"]} model @param {[number, number]} range @param {number} columns @returns {number[][]}
 */
export function series(model, [begin, end], columns) {
  /** @type {number[]} */
  const places = [];
  for (let column = 0; column <= columns; column++) {
    const place = model.placeOfTime(begin + ((end - begin) * column) / columns);
    if (place > 0 && place !== places[places.length - 1]) places.push(place);
  }
  const times = places.map((place) => model.times[place - 1]);
  const rows = model.counts.map((all) => places.map((place) => all[place - 1]));
  if (times.length && end > times[times.length - 1]) {
    times.push(end);
    rows.forEach((row) => row.push(row[row.length - 1]));
  }
  for (let index = 1; index < rows.length; index++) rows[index] = rows[index].map((value, at) => value + rows[index - 1][at]);
  return [times, ...rows];
}

/** @extends {Component<{app: App}>} */
export class TimeAxis extends Component {
  place = createRef();
  /** @type {uPlot | null} */
  plot = null;
  drawn = { theme: "", shown: "" };
  state = { hint: { text: "", of: "" }, box: { left: 0, width: 0, height: 0 } };

  componentDidMount() {
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.place.current);
    this.draw();
  }

  componentDidUpdate() {
    this.draw();
  }

  /** Make the chart, or bring it up to date. */
  draw() {
    const { model, ui } = this.props.app;
    const width = this.place.current.clientWidth;
    if (!width) return;
    if (!this.plot || this.drawn.theme !== ui.scheme) {
      this.make(width);
      this.drawn.shown = "";
    }
    const plot = /** @type {uPlot} */ (this.plot);
    const [begin, end] = ui.range ?? model.span;
    const shown = `${model.length} ${model.marks.length} ${begin} ${end} ${width}`;
    if (plot.width !== width) plot.setSize({ width, height: HEIGHT });
    if (this.drawn.shown !== shown) {
      plot.setData(/** @type {any} */ (series(model, [begin, end], width)), false);
      plot.setScale("x", { min: begin, max: end });
    }
    this.drawn = { theme: ui.scheme, shown };
    const box = { left: plot.over.offsetLeft, width: plot.over.offsetWidth, height: plot.over.offsetHeight + plot.over.offsetTop };
    if (box.left !== this.state.box.left || box.width !== this.state.box.width) this.setState({ box });
  }

  /** @param {number} width */
  make(width) {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const gutter = parseInt(colour("gutter"));
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: `11px ${getComputedStyle(document.body).fontFamily}` };
    const steps = uPlot.paths.stepped?.({ align: 1 });
    this.plot = new uPlot(
      {
        width, height: HEIGHT, padding: [20, 14, 0, 0], legend: { show: false },
        cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most || 0, 1) * 1.08] } },
        axes: [{ ...axis, size: 24, space: 90, values: (_, splits, __, ___, step) => splits.map((each) => clock(each).slice(0, step < 1 ? 12 : 8)) }, { ...axis, size: gutter, space: 19, incrs: COUNTS, gap: 8 }],
        series: [{}, ...COUNTED.map((name, index) => ({ fill: index ? undefined : colour(`state-${name}`), width: 0, points: { show: false }, paths: steps }))],
        bands: COUNTED.slice(1).map((name, index) => ({ series: /** @type {[number, number]} */ ([index + 2, index + 1]), fill: colour(`state-${name}`) })),
        hooks: { draw: [(plot) => this.over(plot, colour)] },
      },
      [[], ...COUNTED.map(() => [])],
      this.place.current,
    );
    this.plot.over.addEventListener("pointerdown", this.press);
    this.plot.over.addEventListener("pointermove", this.move);
    this.plot.over.addEventListener("pointerleave", this.leave);
    this.plot.over.addEventListener("wheel", this.wheel, { passive: false });
  }

  /** Draw the marks. @param {uPlot} plot @param {(name: string) => string} colour */
  over(plot, colour) {
    const { model } = this.props.app;
    const [pen, ratio] = [plot.ctx, window.devicePixelRatio || 1];
    const { left, width, height } = plot.bbox;
    const x = (/** @type {number} */ time) => plot.valToPos(time, "x", true);
    pen.save();
    pen.beginPath();
    pen.rect(left - 8 * ratio, 0, width + 18 * ratio, plot.ctx.canvas.height);
    pen.clip();
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    /** @type {Record<string, number>} */
    const last = {};
    let free = -Infinity;
    for (const mark of model.marks) {
      const [sign, name] = MARKS[mark.kind] ?? MARKS.step;
      const at = x(mark.t);
      if (at - (last[mark.kind] ?? -Infinity) < CLOSE * ratio) continue;
      last[mark.kind] = at;
      const shifted = at < free ? Math.min(free, at + 2 * CLOSE * ratio) : at;
      free = shifted + 11 * ratio;
      pen.fillStyle = colour(name);
      pen.font = `${(mark.kind === "violation" ? 15 : 12) * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      pen.fillText(sign, shifted, MARK_Y * ratio);
      pen.globalAlpha = 0.4;
      pen.fillRect(at - 0.5 * ratio, 17 * ratio, ratio, height + 3 * ratio);
      pen.globalAlpha = 1;
    }
    pen.restore();
  }

  /** Return where the chosen moment is; the newest revision is the right end. */
  headAt() {
    const { model, ui, place, live } = this.props.app;
    const [begin, end] = ui.range ?? model.span;
    const { left, width } = this.state.box;
    const time = live ? end : model.timeOf(place);
    return left + Math.min(Math.max((time - begin) / (end - begin), -0.01), 1) * width;
  }

  /** @param {number} x in the plot */
  time(x) {
    return /** @type {uPlot} */ (this.plot).posToVal(x, "x");
  }

  /** Return the mark near a place of the pointer. @param {PointerEvent} event @returns {Mark | undefined} */
  near(event) {
    const plot = /** @type {uPlot} */ (this.plot);
    const close = this.props.app.model.marks.map((mark) => ({ mark, far: Math.abs(plot.valToPos(mark.t, "x") - event.offsetX) }));
    return close.filter((each) => each.far < NEAR).sort((a, b) => a.far - b.far)[0]?.mark;
  }

  /** @param {PointerEvent} event */
  press = (event) => {
    /** @type {Element} */ (event.currentTarget).setPointerCapture(event.pointerId);
    this.scrub(event);
  };

  /** @param {PointerEvent} event */
  move = (event) => {
    if (event.buttons & 1) return this.scrub(event);
    const mark = this.near(event);
    const { model } = this.props.app;
    const revision = model.revisionAt(model.placeOfTime(this.time(event.offsetX)));
    const text = mark ? `${mark.kind} ${clock(mark.t)} ${model.named(mark.text)}` : revision ? `revision ${revision.r} ${clock(revision.t)} ${keyOf(revision)}` : "";
    this.setState({ hint: { text, of: this.moment() } });
  };

  leave = () => this.setState({ hint: { text: "", of: "" } });

  /** Return what a hint belongs to: another moment and a new write end it. */
  moment() {
    const { model, place } = this.props.app;
    return `${place} ${model.length}`;
  }

  /** @param {PointerEvent} event */
  scrub(event) {
    const { app } = this.props;
    const place = app.model.placeOfTime(this.time(event.offsetX));
    const end = event.offsetX >= /** @type {uPlot} */ (this.plot).over.offsetWidth - 2;
    app.seek(end && !app.ui.range ? null : place);
  }

  /** Zoom around the pointer. @param {WheelEvent} event */
  wheel = (event) => {
    event.preventDefault();
    zoomAxis(this.props.app, event.deltaY > 0 ? 1.25 : 0.8, this.time(event.offsetX));
  };

  render() {
    const { app } = this.props;
    const { hint } = this.state;
    return html`<section class="axis panel" aria-label="Time axis">
      <${Transport} app=${app} hint=${hint.of === this.moment() ? hint.text : ""} />
      <div class="chart"><div class="plot" ref=${this.place}></div>
        <i class="head" style=${{ left: `${this.headAt()}px`, height: `${this.state.box.height}px` }}></i></div>
      <${Lanes} app=${app} box=${this.state.box} />
    </section>`;
  }
}

/** Show a shorter or a longer part of the history. @param {App} app @param {number} factor @param {number} [around] */
export function zoomAxis(app, factor, around) {
  const [first, last] = app.model.span;
  const [begin, end] = app.ui.range ?? [first, last];
  const middle = around ?? (app.live ? last : app.model.timeOf(app.place));
  const [low, high] = [middle - (middle - begin) * factor, middle + (end - middle) * factor];
  if (high - low < 0.002) return;
  app.set({ range: high - low >= last - first ? null : [Math.max(low, first), Math.min(high, last)] });
}

/** Return the place of the next or former mark. @param {App} app @param {number} by */
export function markFrom({ model, place, live }, by) {
  const now = live ? model.span[1] : model.timeOf(place);
  const found = by > 0 ? model.marks.find((mark) => mark.t > now + 1e-4) : model.marks.findLast((mark) => mark.t < now - 1e-4 && model.placeOfTime(mark.t) !== place);
  return found ? model.placeOfTime(found.t) : place;
}

/** The buttons of the axis, and the chosen moment in words. @param {{app: App, hint: string}} props */
function Transport({ app, hint }) {
  const { model, place, live, ui } = app;
  const revision = model.revisionAt(place);
  const is_live = model.document.source === "live";
  const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ act, disabled = false) =>
    html`<button title=${label} aria-label=${label} disabled=${disabled} onClick=${act}>${sign}</button>`;
  return html`<div class="transport">
    <div class="buttons" role="group" aria-label="Moment">
      ${button("⇤", "Former mark (Shift+←)", () => app.seek(markFrom(app, -1)))}
      ${button("‹", "Former revision (←)", () => app.seek(model.step(place, -1)), place <= model.first)}
      <button class="play" aria-label=${ui.playing ? "Pause (Space)" : "Play (Space)"} title=${ui.playing ? "Pause (Space)" : "Play (Space)"} onClick=${() => app.set({ playing: !ui.playing })}>${ui.playing ? "❚❚" : "▶"}</button>
      ${button("›", "Next revision (→)", () => app.seek(model.step(place, 1)), place >= model.length)}
      ${button("⇥", "Next mark (Shift+→)", () => app.seek(markFrom(app, 1)))}
      <button class=${`live ${live && (app.badge === "live" || !is_live) ? "on" : ""}`} aria-pressed=${live} title="The newest revision (End)" onClick=${() => app.seek(null)}>${is_live ? "● Live" : "End"}</button>
    </div>
    <input class="scrub" type="range" min=${model.first} max=${model.length} value=${place} aria-label="Revision" aria-valuetext=${`revision ${model.numberOf(place)}`}
      onInput=${(/** @type {any} */ event) => app.seek(Number(event.target.value))} />
    <p class="moment" aria-live="off"><b>revision <span id="revision">${model.numberOf(place)}</span></b> <time title=${dated(model.timeOf(place))}>${clock(model.timeOf(place))}</time>
      <span class="quiet">${hint || (revision && !revision.state ? `${keyOf(revision)}: ${revision.w || (revision.row ? "written" : "deleted")}` : "state at the beginning")}</span></p>
    <div class="buttons" role="group" aria-label="Axis">
      <label><span class="sr">Speed</span><select title="Speed" value=${String(ui.speed)} onChange=${(/** @type {any} */ event) => app.set({ speed: Number(event.target.value) })}>
        ${[0.1, 1, 5, 20, 100].map((each) => html`<option value=${String(each)}>${each}×</option>`)}</select></label>
      ${button("−", "Show more of the axis", () => zoomAxis(app, 2))}
      ${button("+", "Show less of the axis", () => zoomAxis(app, 0.5))}
    </div>
  </div>`;
}
