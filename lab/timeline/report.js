const { items, timelines, empty, page } = JSON.parse(document.getElementById("data").textContent);
const dialog = document.getElementById("item"), content = document.getElementById("content");
const add = (parent, tag, text, more) => { const e = Object.assign(document.createElement(tag), more); if (text !== undefined) e.textContent = text; parent.append(e); return e; };

/** Return the text that Python compressed. */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** Show a time line: the dashboard's page with its document, in a frame. */
async function timeline(parent, key) {
  if (!timelines[key]) return;
  const shown = add(parent, "iframe", undefined, { title: "Time line" });
  const [text, data] = await Promise.all([unpacked(page), unpacked(timelines[key])]);
  shown.src = URL.createObjectURL(new Blob([text.replace(empty, () => data)], { type: "text/html;charset=utf-8" }));
  shown.onload = () => URL.revokeObjectURL(shown.src);
}

function fill(parent, item, withTimeline) {
  const head = add(parent, "h2", item.name, { id: "name" });
  head.prepend(add(head, "span", item.outcome, { className: "chip " + item.outcome }), " ");
  for (const text of item.texts) add(parent, "p", text);
  if (withTimeline && item.timeline) timeline(parent, item.timeline);
  for (const [title, lines, open] of item.blocks) {
    const d = add(parent, "details", undefined, { open });
    add(d, "summary", `${title} (${lines.length})`);
    const pre = add(d, "pre", undefined, { tabIndex: 0 });
    for (const line of lines) add(pre, "span", line + "\n", { className: /^\s*[\d.]*s?\s*✗/.test(line) ? "bad" : "" });
  }
  for (const [title, command] of Object.entries(item.commands)) {
    add(parent, "h3", title);
    add(parent, "pre", command, { className: "command", tabIndex: 0 });
  }
  const files = Object.entries(item.files);
  if (files.length) add(parent, "h3", "Files beside this page");
  for (const [name, path] of files) { add(parent, "a", name, { href: encodeURI(path) }); parent.append(" "); }
}

function show(id) {
  content.replaceChildren();
  fill(content, items[id], !document.querySelector("[data-timeline]"));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}
const follow = () => { const id = decodeURIComponent(location.hash.slice(1)); if (Object.hasOwn(items, id)) show(id); };
addEventListener("click", e => { const b = e.target.closest("[data-item]"); if (b) { history.replaceState(null, "", "#" + b.dataset.item); show(b.dataset.item); } });
dialog.addEventListener("close", () => { content.replaceChildren(); history.replaceState(null, "", "#"); });
dialog.addEventListener("click", e => { if (e.target === dialog) dialog.close(); });
for (const e of document.querySelectorAll("[data-timeline]")) timeline(e, e.dataset.timeline);
const only = document.getElementById("only");
if (only) fill(only, Object.values(items)[0], false);
else { addEventListener("hashchange", follow); follow(); }
