/**
 * The fold of revisions into the state of a cluster at any of them. Pure: no DOM, no clock.
 *
 * A place is the number of revisions that are folded, from `first` (the state at the beginning of the history) to
 * `length`. Checkpoints make any place cheap: at most as many revisions are folded again as there are objects.
 */

/** @import { Revision, TimeLine, Row, Mark, Bar } from "./types.js" */
/** @typedef {Map<string, Revision>} State the last revision of each object that exists, by key */

const CHECKPOINT = 500;
/** What is counted at every revision, in the order of the chart. */
export const COUNTED = ["running", "starting", "nominated", "pending", "terminating"];

/** Return the name of an object: "Pod default/a", "Node n1". @param {Revision} revision */
export const keyOf = (revision) => `${revision.k} ${revision.ns ? revision.ns + "/" : ""}${revision.n}`;

/** Return the state of a pod, for its colour and the chart. @param {Row} row */
export function podState(row) {
  if (row.phase === "Succeeded" || row.phase === "Failed") return "done";
  if (row.terminating) return "terminating";
  if (row.node) return row.phase === "Running" ? "running" : "starting";
  if (row.prebind) return "binding";
  if (row.nominated) return "nominated";
  return row.gated ? "gated" : "pending";
}

/** @type {Record<string, string>} */
const COUNTED_AS = { binding: "nominated", gated: "pending" };
/** @param {Row} row */
const counted = (row) => COUNTED.indexOf(COUNTED_AS[podState(row)] ?? podState(row));

export class Model {
  /** @param {TimeLine} document */
  constructor(document) {
    this.document = document;
    /** @type {Revision[]} */
    this.revisions = [];
    /** @type {Mark[]} */
    this.marks = [...(document.marks ?? [])];
    /** @type {Map<string, number[]>} the places of each object's revisions */
    this.places = new Map();
    /** @type {Map<string, number>} owners of pods by first appearance: their colours do not change with the moment */
    this.owners = new Map();
    /** @type {Set<number>} */
    this.priorities = new Set();
    /** @type {number[]} the time of each place; it never falls */
    this.times = [];
    /** @type {number[][]} pods in each state of COUNTED at each place */
    this.counts = COUNTED.map(() => []);
    /** @type {State} */
    this.head = new Map();
    /** @type {{place: number, state: State}[]} */
    this.checkpoints = [{ place: 0, state: new Map() }];
    this.cursor = { place: 0, state: /** @type {State} */ (new Map()) };
    this.now = COUNTED.map(() => 0);
    this.append(document.revisions);
    /** The state at the beginning: the revisions before it are no writes. */
    this.first = Math.max(this.revisions.findIndex((each) => !each.state), 0);
    if (this.revisions.every((each) => each.state)) this.first = this.revisions.length;
  }

  get length() {
    return this.revisions.length;
  }

  /** Add revisions at the end. @param {Revision[]} revisions */
  append(revisions) {
    for (const revision of revisions) {
      const key = keyOf(revision);
      const former = this.head.get(key)?.row;
      this.revisions.push(revision);
      const places = this.places.get(key);
      if (places) places.push(this.length);
      else this.places.set(key, [this.length]);
      if (revision.k === "Pod") this.#count(former, revision.row);
      apply(this.head, key, revision);
      const last = this.times[this.times.length - 1] ?? 0;
      this.times.push(Math.max(revision.t || 0, last));
      this.counts.forEach((series, index) => series.push(this.now[index]));
      const checkpoint = this.checkpoints[this.checkpoints.length - 1];
      if (this.length - checkpoint.place >= Math.max(CHECKPOINT, this.head.size))
        this.checkpoints.push({ place: this.length, state: new Map(this.head) });
    }
  }

  /** Add marks; the newest may come again. @param {Mark[]} marks */
  mark(marks) {
    const known = new Set(this.marks.map((each) => `${each.t} ${each.text}`));
    this.marks.push(...marks.filter((each) => !known.has(`${each.t} ${each.text}`)));
    this.marks.sort((a, b) => a.t - b.t);
  }

  /** @param {Row | null | undefined} former @param {Row | null} row */
  #count(former, row) {
    if (former && counted(former) >= 0) this.now[counted(former)]--;
    if (!row) return;
    if (counted(row) >= 0) this.now[counted(row)]++;
    if (!this.owners.has(row.owner ?? "")) this.owners.set(row.owner ?? "", this.owners.size);
    this.priorities.add(row.priority ?? 0);
  }

  /** Return the state at a place; it is valid until the next call. @param {number} place @returns {State} */
  stateAt(place) {
    const target = Math.min(Math.max(place, 0), this.length);
    const checkpoint = this.checkpoints.findLast((each) => each.place <= target) ?? this.checkpoints[0];
    if (this.cursor.place > target || this.cursor.place < checkpoint.place)
      this.cursor = { place: checkpoint.place, state: new Map(checkpoint.state) };
    for (let index = this.cursor.place; index < target; index++)
      apply(this.cursor.state, keyOf(this.revisions[index]), this.revisions[index]);
    this.cursor.place = target;
    return this.cursor.state;
  }

  /** Return the place after the last revision up to a number. @param {number} number */
  placeOfRevision(number) {
    let place = this.first;
    for (let index = this.first; index < this.length && this.revisions[index].r <= number; index++) place = index + 1;
    return place;
  }

  /** Return the place after the last revision up to a time. @param {number} time */
  placeOfTime(time) {
    let [low, high] = [this.first, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the place of the next or former revision; writes of one revision are one step. @param {number} place @param {number} by */
  step(place, by) {
    const same = (/** @type {number} */ at) =>
      at > this.first && at < this.length && this.revisions[at].r === this.revisions[at - 1].r;
    let next = place + by;
    while (same(next)) next += by;
    return Math.min(Math.max(next, this.first), this.length);
  }

  /** Return the revision before a place. @param {number} place @returns {Revision | undefined} */
  revisionAt(place) {
    return this.revisions[place - 1];
  }

  /** Return the time of a place. @param {number} place */
  timeOf(place) {
    return this.times[Math.max(place, 1) - 1] || this.document.begin || 0;
  }

  /** Return the revision number of a place. @param {number} place */
  numberOf(place) {
    return Math.max(this.revisionAt(place)?.r ?? 0, place === this.first ? (this.document.coverage?.begin ?? 0) : 0);
  }

  /** Return where the time axis begins and ends. @returns {[number, number]} */
  get span() {
    const begin = Math.min(this.document.begin || Infinity, this.times[Math.max(this.first - 1, 0)] || Infinity, this.marks[0]?.t ?? Infinity);
    const end = Math.max(this.document.end ?? 0, this.times[this.length - 1] ?? 0, this.marks[this.marks.length - 1]?.t ?? 0);
    return begin < end ? [begin, end] : [end - 1, end];
  }

  /** Return the rows of bars of an object: how long each of its values lasted. @param {string} key @returns {Map<string, Bar[]>} */
  lane(key) {
    /** @type {Map<string, Bar[]>} */
    const found = new Map();
    for (const place of this.places.get(key) ?? []) {
      const values = this.revisions[place - 1].row?.rows ?? {};
      for (const name of new Set([...found.keys(), ...Object.keys(values)])) {
        const bars = found.get(name) ?? [];
        found.set(name, bars);
        const last = bars[bars.length - 1];
        const open = last && last.end === null ? last : undefined;
        if ((open?.value ?? "") === (values[name] ?? "")) continue;
        if (open) open.end = this.timeOf(place);
        if (values[name]) bars.push({ value: values[name], begin: this.timeOf(place), end: null });
      }
    }
    for (const [name, bars] of found)
      if (bars.length <= 1 && bars.every((bar) => bar.value.startsWith("False"))) found.delete(name);
    return found;
  }
}

/** @param {State} state @param {string} key @param {Revision} revision */
function apply(state, key, revision) {
  if (revision.row) state.set(key, revision);
  else state.delete(key);
}
