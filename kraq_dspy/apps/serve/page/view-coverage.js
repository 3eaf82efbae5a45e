// How much of the corpus its questions cover: by passage, by level, and by how many questions one reads.

import { count, h, link, number, percent, svg } from "./dom.js";
import { questionRow, section } from "./parts.js";
import { source } from "./source.js";

export async function viewCoverage() {
  const picture = await source.get("coverage");
  const uncovered = picture.documents.filter((each) => each.counts.every((one) => !one));
  return {
    title: "Coverage",
    node: h("div", { class: "page" },
      h("h1", {}, `${percent(picture.share)} of the passages are near a question`),
      h("p", { class: "lead" }, `A passage counts as covered when it is among the ${picture.k} nearest to one of ${count(picture.n_questions, "question")}.`),
      h("div", { class: "columns" },
        section("By level", h("table", { class: "levels" }, h("tbody", {}, picture.levels.map((each) => h("tr", {},
          h("th", { scope: "row" }, `Level ${each.level}`), h("td", { class: "grow" }, h("span", { class: "meter" }, h("span", { style: { width: `${100 * each.share}%` } }))), h("td", {}, percent(each.share))))))),
        section("By the number of questions read", curves(picture))),
      section(`${count(picture.n_passages, "passage")} of ${count(picture.n_documents, "document")}`,
        h("p", { class: "legend" }, [0, 1, 2, 4, 8].map((each, place) => h("span", {}, h("i", { class: `cell${place}` }), ["no question", "1", "2 to 3", "4 to 7", "8 or more"][place]))),
        h("div", { class: "matrix" }, picture.documents.map(cellsOf)),
        picture.n_documents > picture.documents.length ? h("p", { class: "dim" }, `The first ${number(picture.documents.length)} documents.`) : null),
      uncovered.length ? section(`${count(uncovered.length, "document")} without a question near`, h("ul", { class: "plain short" }, uncovered.slice(0, 30).map((each) => h("li", {}, h("a", { href: link("document", each.id) }, each.title || each.id))))) : null,
      section("The questions that cover most", h("ol", { class: "plain" }, picture.chosen.map((each) => questionRow(each))))),
  };
}

function cellsOf(document) {
  const covered = document.counts.filter(Boolean).length;
  const name = `${document.title || document.id}: ${covered} of ${document.counts.length} passages`;
  return h("a", { class: "cells", href: link("document", document.id), title: name, "aria-label": name },
    document.counts.map((each) => h("i", { class: `cell${each === 0 ? 0 : each === 1 ? 1 : each < 4 ? 2 : each < 8 ? 3 : 4}` })));
}

const WIDTH = 460;
const HEIGHT = 220;
const LEFT = 44;
const BOTTOM = 28;

function curves(picture) {
  const most = picture.n_questions;
  const x = (questions) => LEFT + ((WIDTH - LEFT - 12) * questions) / most;
  const y = (share) => 10 + (HEIGHT - BOTTOM - 10) * (1 - share);
  const lines = Object.entries(picture.curves);
  const ticks = [0, 0.5, 1];
  return h("figure", {},
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": `Share covered by the first questions, up to ${percent(picture.share)} by all ${most}` },
      ticks.map((each) => [svg("line", { x1: LEFT, x2: WIDTH - 12, y1: y(each), y2: y(each), class: "grid" }), svg("text", { x: LEFT - 8, y: y(each) + 4, "text-anchor": "end" }, percent(each))]),
      svg("text", { x: LEFT, y: HEIGHT - 8 }, "1"), svg("text", { x: WIDTH - 12, y: HEIGHT - 8, "text-anchor": "end" }, count(most, "question")),
      lines.map(([, points], place) => svg("polyline", { class: `line line${place}`, points: [[0, 0], ...points].map(([questions, share]) => `${x(questions).toFixed(1)},${y(share).toFixed(1)}`).join(" ") }))),
    h("figcaption", { class: "legend" }, lines.map(([name], place) => h("span", {}, h("i", { class: `stroke line${place}` }), name))));
}
