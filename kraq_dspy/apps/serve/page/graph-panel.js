// The graph of a neighbourhood with its buttons; drawn when it comes into sight.

import { h, number, replace } from "./dom.js";
import { Graph } from "./graph.js";

const FIRST = 150;
const MOST = 1000;

export function graphPanel(load, size) {
  const canvas = h("canvas", { tabindex: "0", role: "application", "aria-label": "Graph of the neighbourhood. Arrow keys move it, plus and minus zoom; the lists beside it have the same links." });
  const tip = h("p", { class: "tip", role: "status" });
  const left = h("span", { class: "dim" });
  const wider = h("button", { onclick: () => { fill(MOST); wider.remove(); }, title: "More of the neighbourhood" }, "More");
  const box = h("div", { class: "graph" }, canvas, h("div", { class: "tools" },
    tip, left, wider,
    h("button", { onclick: () => graph.zoom(1.4), "aria-label": "Larger" }, "+"),
    h("button", { onclick: () => graph.zoom(1 / 1.4), "aria-label": "Smaller" }, "−"),
    h("button", { onclick: () => graph.fit(), "aria-label": "All of it" }, "⤢")));
  const graph = new Graph(canvas, { tell: (text) => replace(tip, text), open: (id) => { location.hash = `#entity/${encodeURIComponent(id)}`; } });

  async function fill(limit) {
    try {
      const data = await load(limit);
      graph.show(data);
      replace(left, `${number(data.nodes.length)} nodes`);
      if (!data.n_left_out) wider.remove();
    } catch (error) {
      replace(tip, error.message);
    }
  }

  return {
    node: box,
    ready: () => { graph.start(); fill(Math.max(FIRST, Math.min(MOST, size))); },
    leave: () => graph.stop(),
  };
}
