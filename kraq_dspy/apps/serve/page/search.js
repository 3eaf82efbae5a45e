// The field at the top: questions, entities and passages while one types.

import { count, dot, h, link, replace } from "./dom.js";
import { wordsOf } from "./parts.js";
import { source } from "./source.js";

const PAUSE_MS = 120;

export function searchBox(status) {
  let timer = 0;
  let turn = 0;
  let chosen = -1;
  const list = h("div", { id: "found", role: "listbox", "aria-label": "What was found", hidden: true });
  const field = h("input", {
    id: "search", type: "search", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: "Search questions, entities, passages",
    "aria-label": "Search", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
    oninput: () => { clearTimeout(timer); timer = setTimeout(look, PAUSE_MS); },
    onkeydown: pressed,
    onfocus: () => { if (field.value.trim()) look(); },
  });
  const box = h("form", { class: "search", role: "search", onsubmit: (event) => { event.preventDefault(); go(); } }, field, h("kbd", { "aria-hidden": "true" }, "/"), list);
  document.addEventListener("pointerdown", (event) => { if (!box.contains(event.target)) close(); });
  addEventListener("hashchange", close);

  async function look() {
    const text = field.value.trim();
    if (!text) { close(); return; }
    const mine = ++turn;
    let found;
    try {
      found = await source.get("search", { q: text, limit: 6 });
    } catch (error) {
      if (mine === turn) open(h("p", { class: "none" }, error.message));
      return;
    }
    if (mine !== turn || document.activeElement !== field) return;
    const none = !found.questions.length && !found.entities.length && !found.passages.length;
    open(
      none && h("p", { class: "none" }, "Nothing has these words."),
      group("Questions", found.questions.map((each) => option(link("community", each.community_id), h("span", { class: "question" }, wordsOf(each)), h("span", { class: "dim" }, `level ${each.level}`)))),
      group("Entities", found.entities.map((each) => option(link("entity", each.id), h("span", {}, dot(each.type), each.name), h("span", { class: "dim" }, count(each.n_passages, "passage"))))),
      group("Passages", found.passages.map((each) => option(link("document", each.document_id, { passage: each.id }), h("span", {}, each.title || each.document_id), h("span", { class: "dim cut" }, each.text.slice(0, 140))))),
      group("", [
        option(link("search", "", { q: text }), `Everything with “${text}”`),
        status.can_ask ? option(link("ask", "", { q: text }), `Ask: ${text}`) : null,
      ].filter(Boolean)));
  }

  function group(name, options) {
    return options.length ? h("div", { role: "group", "aria-label": name || "More" }, name && h("h3", {}, name), options) : null;
  }

  function option(href, ...content) {
    return h("a", { href, role: "option", tabindex: "-1", onclick: close }, content);
  }

  function open(...content) {
    chosen = -1;
    replace(list, content);
    list.querySelectorAll("[role=option]").forEach((each, place) => { each.id = `found-${place}`; });
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
  }

  function close() {
    turn += 1;
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function pressed(event) {
    const options = [...list.querySelectorAll("[role=option]")];
    if (event.key === "Escape") {
      if (list.hidden) field.blur();
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && options.length && !list.hidden) {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : options.length - (chosen < 0 ? 0 : 1))) % options.length;
      options.forEach((each, place) => each.setAttribute("aria-selected", String(place === chosen)));
      options[chosen].scrollIntoView({ block: "nearest" });
      field.setAttribute("aria-activedescendant", options[chosen].id);
    }
  }

  function go() {
    const options = list.querySelectorAll("[role=option]");
    if (!list.hidden && chosen >= 0) location.hash = options[chosen].getAttribute("href");
    else if (field.value.trim()) location.hash = link("search", "", { q: field.value.trim() });
    close();
    field.blur();
  }

  return box;
}
