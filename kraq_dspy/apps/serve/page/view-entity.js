// An entity: what the corpus says of it, what it is linked with, and where it is mentioned.

import { count, dot, h, link } from "./dom.js";
import { graphPanel } from "./graph-panel.js";
import { communityRow, growing, passage, section } from "./parts.js";
import { source } from "./source.js";

export async function viewEntity({ id }) {
  const place = `entities/${encodeURIComponent(id)}`;
  const each = await source.get(place);
  const types = { [each.id]: each.type, ...Object.fromEntries(each.links.map((one) => [one.entity.id, one.entity.type])) };
  const load = (offset) => source.get(`${place}/passages`, { offset, limit: 20 });
  const graph = graphPanel((limit) => source.get(`${place}/graph`, { limit }), each.degree);
  const others = each.names.filter((name) => name !== each.name);
  return {
    title: each.name,
    leave: graph.leave,
    ready: graph.ready,
    node: h("div", { class: "page" },
      h("nav", { class: "trail" }, h("ol", {}, h("li", {}, h("a", { href: "#" }, "All questions")), h("li", {}, each.type || "entity"))),
      h("h1", {}, dot(each.type), each.name),
      h("p", { class: "facts" }, `${count(each.degree, "link")} · ${count(each.n_passages, "passage")}`, others.length ? ` · also ${others.join(", ")}` : ""),
      h("div", { class: "columns" },
        h("div", {},
          each.description && section("What is said of it", h("p", { class: "text" }, each.description)),
          each.claims.length ? section("Claims", h("ul", { class: "claims" }, each.claims.slice(0, 30).map((claim) => h("li", {}, claim)))) : null,
          each.communities.length ? section("In these communities", h("ul", { class: "plain" }, each.communities.map(communityRow))) : null),
        h("div", {},
          section("Neighbourhood", graph.node),
          each.links.length ? section("Links", h("ul", { class: "links" }, each.links.slice(0, 60).map((one) => relation(each, one)))) : null)),
      section(count(each.passages.total, "Passage", "Passages"), growing(each.passages, load, (one) => passage(one, { types }), "div", "passages"))),
  };
}

function relation(each, one) {
  const other = h("a", { href: link("entity", one.entity.id) }, dot(one.entity.type), one.entity.name);
  const self = h("span", { class: "dim" }, each.name);
  const words = h("em", {}, ` ${one.predicate} `);
  return h("li", { title: one.description }, one.to ? [self, words, other] : [other, words, self]);
}
