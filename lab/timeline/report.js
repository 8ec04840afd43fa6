/** The dialog of a report's page: it shows an item, and the time line of its history. */

/** @typedef {{name: string, outcome: string, texts: string[], blocks: [string, string[], boolean][], commands: Record<string, string>, files: Record<string, string>, timeline: string}} Item */

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @type {{items: Record<string, Item>, timelines: Record<string, string>, empty: string, page: string}} */
const { items, timelines, empty, page } = JSON.parse(element("data").textContent ?? "");
const dialog = /** @type {HTMLDialogElement} */ (element("item"));
const content = element("content");
const only = document.getElementById("only");

/** Add an element with a text. @template {keyof HTMLElementTagNameMap} T @param {HTMLElement} parent @param {T} tag @param {string} text @param {Partial<HTMLElementTagNameMap[T]>} [more] */
function add(parent, tag, text, more) {
  const added = Object.assign(document.createElement(tag), { textContent: text, ...more });
  parent.append(added);
  return added;
}

/** Return the text that Python compressed. @param {string} text */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** Show a time line: the page of the dashboard with its document, in a frame. @param {HTMLElement} parent @param {string} key */
async function timeline(parent, key) {
  if (!timelines[key]) return;
  const shown = add(parent, "iframe", "", { title: "Time line" });
  const [text, data] = await Promise.all([unpacked(page), unpacked(timelines[key])]);
  shown.src = URL.createObjectURL(new Blob([text.replace(empty, () => data)], { type: "text/html;charset=utf-8" }));
  shown.onload = () => URL.revokeObjectURL(shown.src);
}

/** @param {HTMLElement} parent @param {Item} item @param {boolean} withTimeline */
function fill(parent, item, withTimeline) {
  const head = add(parent, "h2", "", { id: "name" });
  add(head, "span", item.outcome, { className: `chip ${item.outcome}` });
  head.append(` ${item.name}`);
  for (const text of item.texts.filter(Boolean)) add(parent, "p", text);
  if (withTimeline && item.timeline) timeline(parent, item.timeline);
  for (const [title, lines, open] of item.blocks.filter(([, lines]) => lines.length)) {
    const block = add(parent, "details", "", { open });
    add(block, "summary", `${title} (${lines.length})`);
    const text = add(block, "pre", "", { tabIndex: 0 });
    for (const line of lines) add(text, "span", `${line}\n`, { className: /^\s*[\d.]*s?\s*✗/.test(line) ? "bad" : "" });
  }
  for (const [title, command] of Object.entries(item.commands).filter(([, command]) => command)) {
    add(parent, "h3", title);
    add(parent, "pre", command, { className: "command", tabIndex: 0 });
  }
  const files = Object.entries(item.files);
  if (files.length) add(parent, "h3", "Files beside this page");
  for (const [name, path] of files) {
    add(parent, "a", name, { href: encodeURI(path) });
    parent.append(" ");
  }
}

/** @param {string} id */
function show(id) {
  content.replaceChildren();
  fill(content, items[id], !document.querySelector("[data-timeline]"));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

/** Show the item of the location. */
function follow() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (Object.hasOwn(items, id)) show(id);
}

addEventListener("click", (event) => {
  const button = /** @type {Element} */ (event.target).closest("[data-item]");
  if (!(button instanceof HTMLElement)) return;
  const id = button.dataset.item ?? "";
  history.replaceState(null, "", `#${id}`);
  show(id);
});
dialog.addEventListener("close", () => {
  content.replaceChildren();
  history.replaceState(null, "", "#");
});
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});
for (const each of document.querySelectorAll("[data-timeline]")) timeline(/** @type {HTMLElement} */ (each), /** @type {HTMLElement} */ (each).dataset.timeline ?? "");
if (only) fill(only, Object.values(items)[0], false);
else {
  addEventListener("hashchange", follow);
  follow();
}
