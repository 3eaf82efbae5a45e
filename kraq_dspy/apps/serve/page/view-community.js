// A community: its question, summary and findings, its entities as a graph, and its passages.

import { count, h, link } from "./dom.js";
import { graphPanel } from "./graph-panel.js";
import { communityRow, entityChip, growing, passage, section, trail, typesOf, wordsOf } from "./parts.js";
import { source } from "./source.js";

const ENTITIES = 24;

export async function viewCommunity({ id, status }) {
  const place = `communities/${encodeURIComponent(id)}`;
  const each = await source.get(place);
  const types = typesOf(each.entities);
  const name = wordsOf(each) || "A community without a question";
  const load = (offset) => source.get(`${place}/passages`, { offset, limit: 20 });
  const graph = graphPanel((limit) => source.get(`${place}/graph`, { limit }), each.entities.length);
  return {
    title: name,
    leave: graph.leave,
    ready: graph.ready,
    node: h("div", { class: "page" },
      trail(each.path, `level ${each.level}`),
      h("h1", { class: "question" }, name),
      h("p", { class: "facts" }, `${count(each.n_entities, "entity", "entities")} · ${count(each.n_passages, "passage")}`, each.n_children ? ` · ${count(each.n_children, "narrower community", "narrower communities")}` : "",
        status.can_ask && each.question ? h("a", { class: "action", href: link("ask", "", { q: each.question }) }, each.topic ? `Ask: ${each.question}` : "Ask this") : null),
      h("div", { class: "columns" },
        h("div", {},
          each.summary && section("Summary", each.summary.title !== name && h("p", { class: "strong" }, each.summary.title), h("p", { class: "text" }, each.summary.text)),
          each.summary && each.summary.findings.length ? section("Findings", h("ol", { class: "findings" }, each.summary.findings.map((finding) => h("li", {},
            h("strong", {}, finding.summary), finding.explanation && finding.explanation !== finding.summary ? h("p", {}, finding.explanation) : null)))) : null,
          each.children.length ? section("Narrower questions", h("ul", { class: "plain" }, each.children.map(communityRow))) : null),
        h("div", {},
          section("Neighbourhood", graph.node),
          section("Entities", entities(each)))),
      each.evidence.total ? section(count(each.evidence.total, "passage answers it", "passages answer it"), each.evidence.items.map((one) => passage(one, { types }))) : null,
      section(`${each.evidence.total ? "It stands for " : ""}${count(each.passages.total, "passage")}`, growing(each.passages, load, (one) => passage(one, { types }), "div", "passages"))),
  };
}

function entities(each) {
  const rest = each.entities.slice(ENTITIES);
  const hidden = h("span", { hidden: true }, rest.map(entityChip));
  const more = rest.length ? h("button", { class: "more", onclick: () => { hidden.hidden = false; more.remove(); } }, `Show ${rest.length} more`) : null;
  return h("div", { class: "chips" }, each.entities.slice(0, ENTITIES).map(entityChip), hidden, more);
}
