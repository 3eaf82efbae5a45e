// A document as it was indexed, with the passage that one came from in sight.

import { count, h, link, marked } from "./dom.js";
import { questionRow, section } from "./parts.js";
import { source } from "./source.js";

export async function viewDocument({ id, query }) {
  const each = await source.get(`documents/${encodeURIComponent(id)}`);
  const points = Array.from(each.text);
  const wanted = each.passages.find((one) => one.id === query.get("passage"));
  const starts = [...new Set([0, ...each.passages.map((one) => one.start)])].filter((start) => start < points.length || !start).sort((a, b) => a - b);
  const blocks = starts.map((start, place) => {
    const end = place + 1 < starts.length ? starts[place + 1] : points.length;
    const from = each.passages.find((one) => one.start === start);
    const mentions = from ? from.mentions.filter((one) => start + one.end <= end) : [];
    const inside = wanted && each.passages.length > 1 && start >= wanted.start && start < wanted.end;
    return h("p", { class: inside ? "text here" : "text", id: from && wanted && from.id === wanted.id ? "here" : null }, marked(points.slice(start, end).join(""), mentions));
  });
  const facts = Object.entries(each.metadata);
  const leftOut = each.left_out;
  return {
    title: each.title || each.id,
    ready: () => { const here = document.getElementById("here"); if (here) here.scrollIntoView({ block: "center" }); },
    node: h("div", { class: "page narrow" },
      h("nav", { class: "trail" }, h("ol", {}, h("li", {}, h("a", { href: "#" }, "All questions")), h("li", {}, "document"))),
      h("h1", {}, each.title || each.id),
      h("p", { class: "facts" }, each.title && each.title !== each.id ? `${each.id} · ` : "", count(each.passages.length, "passage"), facts.map(([name, value]) => ` · ${name}: ${value}`)),
      h("div", { class: "document" }, blocks),
      leftOut.length ? h("details", {}, h("summary", {}, `${count(leftOut.length, "line")} left out: menus, links, notices`), h("p", { class: "text" }, leftOut.join("\n"))) : null,
      each.questions.length ? section("Questions that it answers", h("ul", { class: "plain" }, each.questions.map((one) => questionRow(one)))) : null,
      wanted ? h("p", {}, h("a", { href: link("document", each.id) }, "Without the mark")) : null),
  };
}
