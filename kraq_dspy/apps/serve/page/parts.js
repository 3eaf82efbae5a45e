// What several views show: questions in a list, passages with their mentions, a head with facts.

import { count, dot, h, link, marked } from "./dom.js";

// What a community or a question is called: by its topic where the question is an example of it.
export function wordsOf(each) {
  const asked = each.question || each.text || "";
  if (!each.topic) return asked || each.title || "";
  return asked.endsWith("?") ? `${each.topic}, such as: ${asked}` : `About ${each.topic}`;
}

// How many passages answer a question, and how many it stands for.
export function answering(each) {
  const n = each.evidence ? each.evidence.length : each.n_answering;
  return n ? `${count(n, "passage answers", "passages answer")} it · stands for ${each.n_passages}` : count(each.n_passages, "passage");
}

export function questionRow(each, more = null) {
  return h("li", { class: "question-row" },
    h("a", { class: "question", href: each.community_id ? link("community", each.community_id) : link("search", "", { q: each.text }), "data-stop": true }, wordsOf(each)),
    h("span", { class: "facts" }, `level ${each.level} · ${answering(each)}`, more));
}

// A question that is known to be answerable: asked where that is possible, else shown where it comes from.
export function suggested(each, { can_ask }) {
  const href = can_ask ? link("ask", "", { q: each.text, go: "1" }) : link("document", each.document_id, { passage: each.chunk_id });
  return h("li", {}, h("a", { class: "question", href, title: each.title || each.document_id }, each.text));
}

export function communityRow(each) {
  return h("li", { class: "question-row" },
    h("a", { class: each.question ? "question" : "question none", href: link("community", each.id), "data-stop": true }, wordsOf(each) || `${count(each.n_entities, "entity", "entities")} without a question`),
    h("span", { class: "facts" }, `level ${each.level} · ${answering(each)} · ${count(each.n_entities, "entity", "entities")}`));
}

export function entityChip(each) {
  return h("a", { class: "chip", href: link("entity", each.id), title: `${each.type || "entity"}, ${count(each.degree, "link")}` }, dot(each.type), each.name);
}

export function passage(each, { types = {}, note = null, open = true } = {}) {
  const text = h("p", { class: open ? "text" : "text folded" }, marked(each.text, each.mentions, types));
  const article = h("article", { class: "passage" },
    h("header", {}, h("a", { href: link("document", each.document_id, { passage: each.id }), "data-stop": true }, each.title || each.document_id || "report"), note),
    text);
  if (!open) text.addEventListener("click", (event) => { if (!event.target.closest("a") && !String(getSelection())) text.classList.toggle("folded"); });
  return article;
}

export function typesOf(entities) {
  return Object.fromEntries(entities.map((each) => [each.id, each.type]));
}

export function trail(path, last) {
  return h("nav", { class: "trail", "aria-label": "From broad to narrow" }, h("ol", {},
    h("li", {}, h("a", { href: "#" }, "All questions")),
    path.map((each) => h("li", {}, h("a", { href: link("community", each.id), title: wordsOf(each) }, wordsOf(each) || `level ${each.level}`))),
    last ? h("li", { "aria-current": "page" }, last) : null));
}

export function section(title, ...content) {
  return h("section", {}, h("h2", {}, title), content);
}

// A list that grows by a page at a time. `load(offset)` answers { total, items }.
export function growing(first, load, row, tag = "ul", cls = "plain") {
  const list = h(tag, { class: cls });
  const more = h("button", { class: "more" });
  const box = h("div", {}, list, more);
  let shown = 0;
  function add(page) {
    page.items.forEach((each) => list.append(row(each)));
    shown += page.items.length;
    more.hidden = shown >= page.total || !page.items.length;
    more.textContent = `Show more (${(page.total - shown).toLocaleString("en")} left)`;
  }
  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      add(await load(shown));
    } finally {
      more.disabled = false;
    }
  });
  add(first);
  return box;
}
