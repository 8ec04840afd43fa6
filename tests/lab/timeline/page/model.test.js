import assert from "node:assert/strict";
import { test } from "node:test";

import { Model, podState } from "../../../../lab/timeline/bundle/model.js";

/** A revision of a pod; row null is a deletion. */
const pod = (r, n, row, more = {}) => ({ r, t: 1000 + r, k: "Pod", ns: "default", n, w: "", row, ...more });
const model = (...revisions) => new Model({ title: "", source: "file", revisions });
const names = (state) => [...state.keys()].sort();

/** Many writes of few objects, with deletions: places of each are folded from nothing for comparison. */
function random(count, objects) {
  let seed = 7;
  const next = (most) => (seed = (seed * 1103515245 + 12345) % 2147483648) % most;
  return Array.from({ length: count }, (_, index) => {
    const name = `p${next(objects)}`;
    return pod(index + 1, name, next(5) ? { phase: ["Pending", "Running"][next(2)], node: ["", "n1"][next(2)], owner: `o${next(3)}` } : null);
  });
}

function folded(revisions, place) {
  const state = new Map();
  for (const each of revisions.slice(0, place)) each.row ? state.set(`Pod default/${each.n}`, each) : state.delete(`Pod default/${each.n}`);
  return state;
}

test("the state at any place is the fold of the revisions before it, in whatever order it is asked", () => {
  const revisions = random(3000, 40);
  const made = new Model({ title: "", source: "file", revisions });
  assert.ok(made.checkpoints.length > 4);
  for (const place of [0, 3000, 1, 1499, 1500, 1501, 12, 2999, 500, 499, 2500, 2499])
    assert.deepEqual([...made.stateAt(place)].sort(), [...folded(revisions, place)].sort(), `place ${place}`);
});

test("revisions that are appended give the same as those of the document", () => {
  const revisions = random(1200, 30);
  const [whole, grown] = [new Model({ title: "", source: "live", revisions }), model()];
  for (let at = 0; at < revisions.length; at += 7) {
    grown.append(revisions.slice(at, at + 7));
    grown.stateAt(Math.floor(at / 2));
  }
  assert.deepEqual([...grown.stateAt(1200)], [...whole.stateAt(1200)]);
  assert.deepEqual(grown.counts, whole.counts);
  assert.deepEqual(grown.times, whole.times);
});

test("pods are counted by state at each place", () => {
  const made = model(
    pod(1, "a", { phase: "Pending" }), pod(2, "a", { nominated: "n1", phase: "Pending" }), pod(3, "a", { node: "n1", phase: "Pending" }),
    pod(4, "a", { node: "n1", phase: "Running" }), pod(5, "a", { node: "n1", phase: "Running", terminating: 9 }), pod(6, "a", null),
  );
  const [running, starting, nominated, pending, terminating] = made.counts;
  assert.deepEqual({ running, starting, nominated, pending, terminating }, {
    running: [0, 0, 0, 1, 0, 0], starting: [0, 0, 1, 0, 0, 0], nominated: [0, 1, 0, 0, 0, 0],
    pending: [1, 0, 0, 0, 0, 0], terminating: [0, 0, 0, 0, 1, 0],
  });
});

test("a pod's state follows its row", () => {
  for (const [row, state] of [
    [{}, "pending"], [{ gated: true }, "gated"], [{ nominated: "n" }, "nominated"], [{ nominated: "n", prebind: true }, "binding"],
    [{ node: "n" }, "starting"], [{ node: "n", phase: "Running" }, "running"], [{ node: "n", phase: "Running", terminating: 1 }, "terminating"],
    [{ node: "n", phase: "Failed", terminating: 1 }, "done"],
  ])
    assert.equal(podState(row), state, JSON.stringify(row));
});

test("the state at the beginning is no step", () => {
  const made = model(pod(5, "a", {}, { state: true }), pod(3, "b", {}, { state: true }), pod(7, "c", {}));
  assert.equal(made.first, 2);
  assert.deepEqual(names(made.stateAt(made.first)), ["Pod default/a", "Pod default/b"]);
  assert.equal(made.step(3, -1), 2);
  assert.equal(made.step(2, -1), 2);
  assert.equal(made.placeOfRevision(6), 2);
});

test("writes of one revision are one step", () => {
  const made = model(pod(1, "a", {}), pod(2, "a", null), pod(2, "b", null), pod(2, "c", {}), pod(3, "d", {}));
  assert.equal(made.step(1, 1), 4);
  assert.equal(made.step(4, -1), 1);
  assert.equal(made.step(5, 1), 5);
});

test("times and revisions are found, and a time never falls", () => {
  const made = model(pod(1, "a", {}), pod(4, "b", {}, { t: 990 }), pod(9, "c", {}));
  assert.deepEqual(made.times, [1001, 1001, 1009]);
  assert.deepEqual([0, 1001, 1005, 1009, 2000].map((time) => made.placeOfTime(time)), [0, 2, 2, 3, 3]);
  assert.deepEqual([0, 1, 3, 4, 9, 99].map((number) => made.placeOfRevision(number)), [0, 1, 1, 2, 3, 3]);
  assert.deepEqual(made.span, [1001, 1009]);
});

test("a bar lasts until its value changes", () => {
  const at = (...values) => values.map((rows, index) => pod(index + 1, "a", rows && { rows }));
  const made = model(...at({ phase: "Pending" }, { phase: "Pending", nominated: "n1" }, { phase: "Pending", nominated: "n1" }, { phase: "Pending", node: "n1" }, null));
  const lane = made.lane("Pod default/a");
  assert.deepEqual(lane.get("nominated"), [{ value: "n1", begin: 1002, end: 1004 }]);
  assert.deepEqual(lane.get("node"), [{ value: "n1", begin: 1004, end: 1005 }]);
  assert.deepEqual(lane.get("phase"), [{ value: "Pending", begin: 1001, end: 1005 }]);
});

test("conditions are bars with their reasons; one that was false all the time is not shown", () => {
  const first = { PodScheduled: "True Bound", DiskPressure: "False" };
  assert.deepEqual(model(pod(1, "a", { rows: first })).lane("Pod default/a"), new Map([["PodScheduled", [{ value: "True Bound", begin: 1001, end: null }]]]));
  const pressed = model(pod(1, "a", { rows: first }), pod(2, "a", { rows: { ...first, DiskPressure: "True" } }));
  assert.ok(pressed.lane("Pod default/a").has("DiskPressure"));
});

/** The hues of the owners at a place. */
const hues = (made, place, ...owners) => owners.map((owner) => made.hueOf(owner, place));
const owned = (r, n, owner, more = {}) => pod(r, n, { owner, node: "n1", ...more });

test("an owner has its colour from its first pod on a node to its last one, whatever comes later", () => {
  const made = model(owned(1, "a", "x"), owned(2, "b", "y"), pod(3, "w", { owner: "waits" }));
  made.append([owned(4, "c", ""), pod(5, "a", null), owned(6, "d", "y"), owned(7, "a", "x"), owned(8, "w", "waits", { node: "", nominated: "n1" })]);
  assert.deepEqual(hues(made, 2, "x", "y"), [0, 1]);
  assert.deepEqual(hues(made, 8, "x", "y", "", "waits"), [0, 1, 2, 3]);
});

test("colours of owners that are gone are used again", () => {
  const made = new Model({ title: "", source: "file", revisions: [] });
  for (let index = 0; index < 30; index++)
    made.append([owned(2 * index + 1, `p${index}`, `o${index}`), ...(index < 7 ? [] : [index % 2 ? pod(2 * index + 2, `p${index - 7}`, null) : owned(2 * index + 2, `p${index - 7}`, `o${index - 7}`, { phase: "Succeeded" })])]);
  for (let index = 7; index < 30; index++) {
    const place = made.placeOfRevision(2 * index + 1);
    const found = hues(made, place, ...Array.from({ length: 8 }, (_, back) => `o${index - back}`));
    assert.deepEqual([...new Set(found)].sort(), [0, 1, 2, 3, 4, 5, 6, 7], `owner ${index}`);
  }
});

test("an owner that shares a colour gets one of its own when one is free", () => {
  const made = model(...Array.from({ length: 10 }, (_, index) => owned(index + 1, `p${index}`, `o${index}`)));
  assert.deepEqual(hues(made, 10, "o7", "o8", "o9"), [7, 8, 9]);
  made.append([pod(11, "p3", null), pod(12, "p5", null), owned(13, "q", "new")]);
  assert.deepEqual(hues(made, 10, "o8", "o9"), [8, 9]);
  assert.deepEqual(hues(made, 13, "o8", "o9", "new"), [3, 5, 8]);
});

test("marks that come again are there once, in the order of their times", () => {
  const made = model(pod(1, "a", {}));
  const [first, second] = [{ t: 5, kind: "step", text: "x" }, { t: 4, kind: "crash", text: "x" }];
  made.mark([first]);
  made.mark([second, first]);
  assert.deepEqual(made.marks, [second, first]);
});
