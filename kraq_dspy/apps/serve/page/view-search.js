// Everything that was found for some words.

import { h } from "./dom.js";
import { entityChip, passage, questionRow, section } from "./parts.js";
import { source } from "./source.js";

export async function viewSearch({ query, status }) {
  const q = query.get("q") || "";
  const byWords = !query.get("by");
  const found = await source.get("search", { q, limit: 30, retriever: byWords ? "" : query.get("by") });
  const none = !found.questions.length && !found.entities.length && !found.passages.length;
  return {
    title: `Search: ${q}`,
    node: h("div", { class: "page" },
      h("h1", {}, `“${q}”`),
      h("p", { class: "tabs" },
        h("a", { href: `#search?q=${encodeURIComponent(q)}`, "aria-current": byWords ? "true" : null }, "By words"),
        h("a", { href: `#search?q=${encodeURIComponent(q)}&by=${status.default_retriever}`, "aria-current": byWords ? null : "true" }, "By meaning")),
      none && h("p", { class: "lead" }, "Nothing has these words. Try it by meaning."),
      found.questions.length ? section("Questions", h("ul", { class: "plain" }, found.questions.map((each) => questionRow(each)))) : null,
      found.entities.length ? section("Entities", h("div", { class: "chips" }, found.entities.map(entityChip))) : null,
      found.passages.length ? section("Passages", h("div", { class: "passages" }, found.passages.map((each) => passage(each, {
        note: h("span", { class: "dim" }, each.why === "dense" ? `dense ${each.score.toFixed(2)}` : each.why || ""),
      })))) : null),
  };
}
