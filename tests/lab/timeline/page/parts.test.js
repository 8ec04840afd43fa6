import assert from "node:assert/strict";
import { test } from "node:test";

import { initial, narrowed } from "../../../../lab/timeline/bundle/actions.js";
import { barsIn, byName, cellAt, clusterOf, columnsMax, fit, grouped, layout, resourcesOf, segments } from "../../../../lab/timeline/bundle/cluster.js";
import { badgeOf } from "../../../../lab/timeline/bundle/components.js";
import { amount, clock, duration } from "../../../../lab/timeline/bundle/format.js";
import { sortOf, spanOf } from "../../../../lab/timeline/bundle/lanes.js";
import { Model } from "../../../../lab/timeline/bundle/model.js";
import { hueBy, legend } from "../../../../lab/timeline/bundle/nodes.js";
import { entriesOf } from "../../../../lab/timeline/bundle/object.js";
import { drawPause } from "../../../../lab/timeline/bundle/pace.js";
import { joined } from "../../../../lab/timeline/bundle/paint.js";
import { queuesOf } from "../../../../lab/timeline/bundle/queues.js";
import { series } from "../../../../lab/timeline/bundle/timeline.js";

const state = (...objects) => new Map(objects.map(([k, n, row]) => [k === "Pod" ? `Pod default/${n}` : `Node ${n}`, { r: 1, t: 1, k, n, row }]));
const nodes = (count) => Array.from({ length: count }, (_, index) => ({ key: `Node n${index}`, name: `n${index}`, row: { zone: `z${index % 3}` }, pods: [], nominated: [] }));

test("pods are on their nodes, bound or nominated, and the others wait", () => {
  const cluster = clusterOf(
    state(
      ["Pod", "bound", { node: "n2", cpu: 100, memory: 5 }], ["Node", "n10", { cpu: 1000 }], ["Node", "n2", { cpu: 1000 }],
      ["Pod", "nominated", { nominated: "n10" }], ["Pod", "waits", {}], ["Pod", "done", { node: "n2", phase: "Succeeded", cpu: 900 }], ["Pod", "lost", { node: "gone" }],
    ),
    () => 0,
  );
  assert.deepEqual(cluster.nodes.map((each) => [each.name, each.pods.map((pod) => pod.name), each.nominated.map((pod) => pod.name)]), [["n2", ["bound"], []], ["n10", [], ["nominated"]]]);
  assert.deepEqual(cluster.nodes[0].used, { cpu: 100, memory: 5, pods: 1 });
  assert.deepEqual(cluster.waiting.map((pod) => pod.name), ["nominated", "waits", "lost"]);
  assert.deepEqual(cluster.counts, { starting: 2, nominated: 1, pending: 1, done: 1 });
});

test("segments fill a bar; a nominated pod without room lies over the end, where the victims are", () => {
  const pod = (name, cpu) => ({ name, row: { cpu } });
  const node = { row: { cpu: 1000 }, pods: [pod("a", 500), pod("victim", 400)], nominated: [pod("new", 300)] };
  assert.deepEqual(segments(node, "cpu").map((each) => [each.pod.name, each.from, each.to, each.nominated]), [["a", 0, 0.5, false], ["victim", 0.5, 0.9, false], ["new", 0.7, 1, true]]);
  assert.deepEqual(segments(node, "memory"), []);
});

test("the legend has the colours of the pods on nodes at the moment", () => {
  const pod = (r, n, row) => ({ r, t: r, k: "Pod", ns: "default", n, row });
  const model = new Model({ title: "", source: "file", revisions: [{ r: 1, t: 1, k: "Node", n: "n1", row: {} }, pod(2, "a", { owner: "ReplicaSet/x", node: "n1" }), pod(3, "b", { node: "n1", priority: 7 }), pod(4, "c", { owner: "Job/waits" }), pod(5, "a", null)] });
  const at = (place, by) => legend(clusterOf(model.stateAt(place), hueBy(model, by, place)), by);
  assert.deepEqual(at(4, "owner"), [[0, "ReplicaSet/x"], [1, "no owner"]]);
  assert.deepEqual(at(5, "owner"), [[1, "no owner"]]);
  assert.deepEqual(at(4, "priority"), [[0, "priority 0"], [1, "priority 7"]]);
});

test("all nodes fit where they can, and do not overlap", () => {
  for (const count of [1, 3, 12, 100, 1000]) {
    const groups = grouped(nodes(count), "zone");
    const columns = fit(groups, 1000, 700, 4);
    const { cells, height } = layout(groups, 1000, columns, 4, 700);
    assert.equal(cells.length, count);
    assert.ok(height <= 700, `${count} nodes: ${height}`);
    const places = new Set(cells.map((each) => `${each.x} ${each.y}`));
    assert.equal(places.size, count);
    for (const each of cells) {
      assert.ok(each.x >= 0 && each.x + each.width <= 1000.001);
      for (const bar of barsIn(each, 4)) assert.ok(bar.height >= 3.9 && bar.y + bar.height <= each.y + each.height, `${count} nodes`);
    }
    assert.equal(cellAt({ cells }, cells[count - 1].x + 1, cells[count - 1].y + 1), cells[count - 1]);
  }
  assert.equal(fit(grouped(nodes(100000), ""), 1000, 700, 4), columnsMax(1000));
});

test("devices have bars after cpu, memory and pods", () => {
  assert.deepEqual(resourcesOf([{ row: { devices: { "gpu.x": 1 } } }, { row: {} }]), ["cpu", "memory", "pods", "gpu.x"]);
});

test("names are in the order of their numbers", () => {
  assert.deepEqual(["n10", "n9", "a"].sort(byName), ["a", "n9", "n10"]);
});

test("quantities, times and durations", () => {
  assert.deepEqual([0, 50, 100, 1500, 32000].map((each) => amount("cpu", each)), ["0", "50m", "0.1", "1.5", "32"]);
  assert.deepEqual([0, 1024, 1.5 * 2 ** 30, 2 ** 40].map((each) => amount("memory", each)), ["0", "1Ki", "1.5Gi", "1Ti"]);
  assert.equal(clock(1732399200.25), "22:00:00.250");
  assert.deepEqual([0.04, 61, 179.6, 185, 9000].map(duration), ["0.0s", "61s", "3m0s", "3m5s", "2h30m"]);
});

test("the lines of nominee history are entries with what follows them", () => {
  const lines = ["revision 7, 2024: Pod default/a created by x", "    status.phase: \"Pending\"", "2024: scheduler: a line", "revision 9, 2024: Pod default/a deleted"];
  assert.deepEqual(entriesOf(lines), [
    { revision: 7, text: lines[0], lines: [lines[1]] }, { revision: 0, text: lines[2], lines: [] }, { revision: 9, text: lines[3], lines: [] },
  ]);
});

test("queues of a past moment come from the pods' statuses", () => {
  const pod = (name, state, row = {}) => ({ key: `Pod default/${name}`, state, row });
  const lists = queuesOf([pod("b", "pending", { reason: "Unschedulable", message: "0/3" }), pod("a", "nominated", { nominated: "n1" }), pod("c", "gated"), pod("d", "pending")]);
  const pods = Object.fromEntries(Object.entries(lists).map(([name, each]) => [name, each.map((item) => item.pod)]));
  assert.deepEqual(pods, { unschedulable: ["default/b"], gated: ["default/c"], nominated: ["default/a"], binding: [], active: ["default/d"] });
});

test("an action begins with its values, or the first choices", () => {
  const fields = [{ name: "name" }, { name: "grace", value: "5" }, { name: "how", choices: ["x", "y"] }, { name: "to", value: "y", choices: ["x", "y"] }];
  assert.deepEqual(initial({ fields }), { name: "", grace: "5", how: "x", to: "y" });
});

test("a process has the choices that begin with its component, or all", () => {
  const action = { fields: [{ name: "name", choices: ["kubelet.sync", "scheduler.bind"] }, { name: "action", choices: ["cut"] }] };
  assert.deepEqual(narrowed(action, "kubelet-0").fields.map((each) => each.choices), [["kubelet.sync"], ["cut"]]);
  assert.deepEqual(narrowed(action, "etcd").fields, action.fields);
});

test("bars are coloured by the name of the row, conditions by their status", () => {
  assert.deepEqual(["node", "phase", "Ready"].map((name) => sortOf(name, "Unknown")), ["node", "phase unknown", "unknown"]);
  assert.equal(sortOf("replicas", "3"), "other");
});

test("the axis is zoomed to an object's revisions, within the history", () => {
  const revisions = [0, 10, 20, 100].map((at, index) => ({ r: index + 1, t: 1000 + at, k: "Pod", ns: "d", n: at === 10 || at === 20 ? "a" : "b", row: {} }));
  const model = new Model({ title: "", source: "file", revisions });
  assert.deepEqual(spanOf(model, "Pod d/a"), [1008.5, 1021.5]);
  assert.deepEqual(spanOf(model, "Pod d/b"), [1000, 1100]);
});

test("a followed cluster that is down is not live", () => {
  const of = (...states) => ({ source: "live", components: states.map((state) => ({ name: "c", state })) });
  assert.deepEqual([of(), of("ready", "down"), of("down", "down")].map((each) => badgeOf(each, true)), ["live", "live", "down"]);
  assert.deepEqual([badgeOf(of("down"), false), badgeOf({ source: "file" }, false)], ["reconnecting", "file"]);
});

test("a busy cluster is drawn once a second, and another for a fiftieth of the time, twice a second or more", () => {
  assert.deepEqual([drawPause(4, 1), drawPause(40, 199), drawPause(4, 200), drawPause(40, 5000)], [200, 500, 1000, 1000]);
});

test("pods that look the same are painted as one; one that is selected, leaves or starts is not", () => {
  const pod = (key, hue, state = "running", row = {}) => ({ key, hue, state, row });
  const all = [pod("a", 0), pod("b", 0), pod("c", 0, "starting"), pod("d", 1), pod("e", 1, "terminating"), pod("f", 1), pod("g", 1)];
  const found = all.map((each, index) => ({ pod: each, from: index / 7, to: (index + 1) / 7, nominated: false }));
  const runs = joined(found, { selected: "g", dim: () => false });
  assert.deepEqual(runs.map((each) => [each.pod.key, Math.round(each.to * 7), Boolean(each.many)]), [["a", 2, true], ["c", 3, false], ["d", 4, false], ["e", 5, false], ["f", 6, false], ["g", 7, false]]);
});

test("the chart has the last revision of each column, and each revision where the axis is zoomed", () => {
  const revisions = Array.from({ length: 1000 }, (_, index) => ({ r: index + 1, t: 1000 + index, k: "Pod", ns: "d", n: `p${index}`, row: { phase: "Pending" } }));
  const model = new Model({ title: "", source: "file", revisions });
  const pending = 1 + 3;
  const whole = series(model, [1000, 1999], 10);
  assert.deepEqual(whole[0].map((each) => each - 1000), [0, 99, 199, 299, 399, 499, 599, 699, 799, 899, 999]);
  assert.deepEqual(whole[pending], whole[0].map((each) => each - 999));
  const zoomed = series(model, [1100.5, 1103.5], 10);
  assert.deepEqual(zoomed[0], [1100, 1101, 1102, 1103, 1103.5]);
  assert.deepEqual(zoomed[pending], [101, 102, 103, 104, 104]);
});
