// A map of the communities: each level is a row, each community as wide as it has passages, narrower ones below it.

import { count, h, link } from "./dom.js";
import { wordsOf } from "./parts.js";
import { source } from "./source.js";

const BROADEST = 60;
const DEPTH = 4;
const ROW = 34;
const LEAST = 3; // pixels of a cell that is worth drawing
const WORDY = 150; // pixels in which the beginning of a question says something

export async function communityMap() {
  const first = await source.get("communities", { level: 0, telling: true, single: false, limit: BROADEST });
  const top = first.items;
  if (top.length < 2) return null;
  const cells = h("div", { class: "map", role: "img", "aria-label": "Communities, broad above narrow; the list below has them in words" });
  const caption = h("p", { class: "map-caption" }, WORDS);
  const figure = h("figure", {}, cells, caption);
  const children = new Map();
  let observer = null;
  let drawn = 0;

  async function draw() {
    const mine = ++drawn;
    const width = cells.clientWidth;
    if (!width) return;
    const made = [];
    let row = top.map((each, place) => ({ each, hue: place }));
    row = spread(row, 0, width);
    let depth = 0;
    while (row.length && depth < DEPTH) {
      const below = [];
      for (const cell of row) {
        if (cell.width < LEAST) continue;
        made.push(cellOf(cell, depth));
        if (cell.each.n_children && cell.width > 24 && depth + 1 < DEPTH) below.push(cell);
      }
      const next = await Promise.all(below.map(async (cell) => {
        if (!children.has(cell.each.id)) children.set(cell.each.id, (await source.get("communities", { parent: cell.each.id, telling: true, limit: 50 })).items);
        return spread(children.get(cell.each.id).map((each) => ({ each, hue: cell.hue })), cell.left, cell.width);
      }));
      if (mine !== drawn) return;
      row = next.flat();
      depth += 1;
    }
    cells.replaceChildren(...made);
    cells.style.height = `${Math.max(1, depth) * ROW}px`;
  }

  function cellOf({ each, left, width, hue }, depth) {
    const words = wordsOf(each);
    const cell = h("a", { class: `cell tone${hue % 6} depth${depth}`, href: link("community", each.id), tabindex: "-1",
      style: { left: `${left}px`, top: `${depth * ROW}px`, width: `${Math.max(1, width - 1)}px`, height: `${ROW - 1}px` } }, width > WORDY ? words : "");
    const tell = () => { caption.textContent = `${words || "Without a question"} (${count(each.n_passages, "passage")}, ${count(each.n_entities, "entity", "entities")})`; };
    cell.addEventListener("pointerenter", tell);
    cell.addEventListener("pointerleave", () => { caption.textContent = WORDS; });
    return cell;
  }

  return {
    node: figure,
    ready: () => { observer = new ResizeObserver(draw); observer.observe(cells); },
    leave: () => { drawn += 1; if (observer) observer.disconnect(); },
  };
}

const WORDS = "Each block is a community, as wide as it has passages; what is narrower lies below it.";

// Places of a row, in proportion to the passages of each.
function spread(row, left, width) {
  const weights = row.map(({ each }) => Math.max(1, each.n_passages));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  let at = left;
  return row.map((cell, place) => {
    const own = (width * weights[place]) / all;
    at += own;
    return { ...cell, left: at - own, width: own };
  });
}
