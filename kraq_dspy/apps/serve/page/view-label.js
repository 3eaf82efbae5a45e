// Labels human questions by keyboard: which of the pooled passages answer one, or that nothing does.

import { count, h, link, replace, say } from "./dom.js";
import { source } from "./source.js";

const ON_A_PAGE = 5;

export async function viewLabel() {
  const node = h("div", { class: "page label" });
  const problem = h("p", { class: "error", role: "alert" });
  let state = await source.get("label");
  let marked = new Set();
  let part = 0;
  let whole = false;
  let busy = false;
  draw();

  function draw() {
    const { question } = state;
    replace(node,
      h("h1", {}, question ? "Which passages answer it?" : "All is labeled"),
      h("p", { class: "lead" }, question ? `${state.labeled + 1} of ${state.total}, into ${state.file}.` : `${state.file}: ${state.summary}`),
      question ? card(question) : done(),
      problem);
  }

  function hints() {
    const keys = [["1-5", "mark"], ["Enter", "take the marks"], ["n", "nothing answers"], ["m", "more"], ["f", "whole texts"], ["s", "later"], ["u", "undo"]];
    return h("span", { class: "hint" }, keys.map(([key, what]) => h("span", {}, h("kbd", {}, key), what)));
  }

  function card(question) {
    const shown = question.passages.slice(part * ON_A_PAGE, (part + 1) * ON_A_PAGE);
    return h("article", { class: "entry", "aria-label": question.text },
      h("h2", { class: "question" }, question.text),
      question.answers.length ? h("p", { class: "facts" }, `answer: ${question.answers.join("; ")}`) : null,
      h("p", { class: "facts" }, hints()),
      shown.length ? null : h("p", { class: "dim" }, "No retriever brings a passage."),
      shown.map((each, place) => h("article", { class: marked.has(each.id) ? "passage marked" : "passage" },
        h("header", {}, h("label", { class: "mark" }, box(each), h("kbd", {}, place + 1), " "), h("a", { href: link("document", each.document_id, { passage: each.id }), target: "_blank" }, each.title)),
        h("p", { class: "text" }, whole ? each.text : cut(each.excerpt)))),
      h("div", { class: "row" },
        h("button", { type: "button", class: "primary", onclick: take }, "These answer it ", h("kbd", {}, "Enter")),
        h("button", { type: "button", class: "danger", onclick: () => decide("label", []) }, "Nothing answers it ", h("kbd", {}, "n")),
        question.passages.length > ON_A_PAGE ? h("button", { type: "button", onclick: more }, "More passages ", h("kbd", {}, "m")) : null,
        h("button", { type: "button", onclick: () => decide("later") }, "Later ", h("kbd", {}, "s")),
        state.labeled ? h("button", { type: "button", onclick: () => decide("undo") }, "Undo ", h("kbd", {}, "u")) : null));
  }

  function done() {
    return h("div", {},
      h("p", {}, "End the server with Ctrl-C where it was started. The terminal says what comes next."),
      state.labeled ? h("div", { class: "row" }, h("button", { type: "button", onclick: () => decide("undo") }, "Undo the last ", h("kbd", {}, "u"))) : null);
  }

  function box(each) {
    return h("input", { type: "checkbox", checked: marked.has(each.id), onchange: () => mark(each), "aria-label": `Answers it: ${each.title}` });
  }

  function mark(each) {
    if (!each) return;
    if (!marked.delete(each.id)) marked.add(each.id);
    draw();
    say(`${each.title} is ${marked.has(each.id) ? "marked" : "no longer marked"}.`);
  }

  function more() {
    part = (part + 1) % Math.max(1, Math.ceil(state.question.passages.length / ON_A_PAGE));
    draw();
  }

  function take() {
    if (marked.size) decide("label", [...marked]);
    else replace(problem, "No passage is marked. Mark one, or press n if nothing answers the question.");
  }

  async function decide(action, passages = []) {
    if (busy) return;
    busy = true;
    replace(problem);
    try {
      state = await source.post("label", { action, passages, id: state.question && action !== "undo" ? state.question.id : "" });
      marked = new Set();
      part = 0;
      draw();
      say(state.question ? state.question.text : state.summary);
      scrollTo(0, 0);
    } catch (error) {
      replace(problem, error.message);
    } finally {
      busy = false;
    }
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
    if (event.key === "Enter" && event.target.closest("button, a")) return; // it presses what has the focus
    const { question } = state;
    const shown = question ? question.passages.slice(part * ON_A_PAGE, (part + 1) * ON_A_PAGE) : [];
    const actions = question
      ? { Enter: take, n: () => decide("label", []), m: more, f: () => { whole = !whole; draw(); }, s: () => decide("later"), u: () => decide("undo") }
      : { u: () => decide("undo") };
    const act = /^[1-5]$/.test(event.key) ? () => mark(shown[Number(event.key) - 1]) : actions[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    act();
  }

  addEventListener("keydown", keys, true);
  return { title: "Label", leave: () => removeEventListener("keydown", keys, true), node };
}

function cut(text) {
  return text.length > 320 ? `${text.slice(0, 320)} …` : text;
}
