/**
 * The fold of revisions into the state of a cluster at any of them. Pure: no DOM, no clock.
 *
 * A place is the number of revisions that are folded, from `first` (the state at the beginning of the history) to
 * `length`. Checkpoints make any place cheap: at most as many revisions are folded again as there are objects.
 */

/** @import { Revision, TimeLine, Row, Mark, Bar } from "./types.js" */
/** @typedef {Map<string, Revision>} State the last revision of each object that exists, by key */

const CHECKPOINT = 500;
const UID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** The colours of pods. */
export const HUES = 8;
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

/** Return the owner whose colour a pod has; undefined for one that is on no node. @param {Row | null | undefined} row */
const colouredBy = (row) => (row && (row.node || row.nominated) && podState(row) !== "done" ? (row.owner ?? "") : undefined);

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
    /** @type {Map<string, {place: number, hue: number}[]>} the hues of owners of pods, and the places from which on */
    this.hues = new Map();
    /** @type {Map<string, number>} pods that have the colour of each owner at the end */
    this.coloured = new Map();
    /** @type {Map<string, string>} the names of pods by uid: Events of preemptions have the preemptor's uid */
    this.uids = new Map();
    /** @type {(string | undefined)[]} the owner of each hue at the end */
    this.taken = [];
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
      if (revision.k === "Pod") this.#count(key, former, revision.row);
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

  /** @param {string} key @param {Row | null | undefined} former @param {Row | null} row */
  #count(key, former, row) {
    if (former && counted(former) >= 0) this.now[counted(former)]--;
    const [before, after] = [colouredBy(former), colouredBy(row)];
    if (before !== after) {
      if (before !== undefined) this.#release(before);
      if (after !== undefined) this.#colour(after);
    }
    if (!row) return;
    if (counted(row) >= 0) this.now[counted(row)]++;
    this.priorities.add(row.priority ?? 0);
    if (!former && row.uid) this.uids.set(row.uid, key.slice("Pod ".length));
  }

  /** Return a text with the names of pods in place of their uids, where the history has them. @param {string} text */
  named(text) {
    return text.replace(UID, (uid) => this.uids.get(uid) ?? uid);
  }

  /** Give an owner a hue with its first pod on a node: its former one, one that none had, or one that is free again. @param {string} owner */
  #colour(owner) {
    const pods = this.coloured.get(owner) ?? 0;
    this.coloured.set(owner, pods + 1);
    if (pods) return;
    const former = this.hues.get(owner)?.at(-1)?.hue ?? HUES;
    const free = this.taken.length < HUES ? this.taken.length : this.taken.indexOf(undefined);
    this.#take(owner, former < HUES && this.taken[former] === undefined ? former : free < 0 ? this.taken.length : free);
  }

  /** Let another owner have a hue after the last pod; one that shares its colour with another comes first. @param {string} owner */
  #release(owner) {
    const pods = (this.coloured.get(owner) ?? 1) - 1;
    this.coloured.set(owner, pods);
    if (pods) return;
    const hue = this.taken.indexOf(owner);
    this.taken[hue] = undefined;
    const sharing = hue < HUES ? this.taken.find((each, index) => index >= HUES && each !== undefined) : undefined;
    if (sharing === undefined) return;
    this.taken[this.taken.indexOf(sharing)] = undefined;
    this.#take(sharing, hue);
  }

  /** @param {string} owner @param {number} hue */
  #take(owner, hue) {
    this.taken[hue] = owner;
    const known = this.hues.get(owner) ?? [];
    this.hues.set(owner, known);
    known.push({ place: this.length, hue });
  }

  /** Return the hue of an owner's pods at a place: below HUES for each, unless there are more owners there. @param {string} owner @param {number} place */
  hueOf(owner, place) {
    return this.hues.get(owner)?.findLast((each) => each.place <= place)?.hue ?? 0;
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
