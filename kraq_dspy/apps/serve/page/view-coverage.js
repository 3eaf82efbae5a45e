// Coverage: which communities a team's own questions never touch, with rows for a test set.

import { count, h, link, percent, replace } from "./dom.js";
import { growing } from "./parts.js";
import { source } from "./source.js";

const PAGE = 40;
const TABS = [["", "Never touched"], ["all", "All communities"], ["refused", "Questions not answered"], ["far", "Near no passage"]];

const QUESTIONS = new Set(["refused", "far"]);

export async function viewCoverage({ query, status }) {
  const shown = query.get("show") || "";
  const load = (offset) => source.get("coverage", { untouched: shown !== "all", refused: shown === "refused", far: shown === "far", offset, limit: PAGE });
  const row = (each) => (QUESTIONS.has(shown) ? asked(each, status.can_ask) : community(each, first.may_add));
  const first = await load(0);
  const touched = first.communities - first.untouched;
  return {
    title: "Coverage",
    node: h("div", { class: "page narrow" },
      h("h1", {}, first.untouched ? `${count(first.untouched, "community", "communities")} that your questions never touch` : "Your questions touch every community"),
      h("p", { class: "lead" }, `${count(first.questions, "question")} of yours touch ${touched} of ${count(first.communities, "community", "communities")}, which have ${percent(first.share)} of the passages. ${first.refused ? `The documents do not answer ${count(first.refused, "question")}.` : ""} ${first.far ? `${first.far} more ${first.far === 1 ? "is" : "are"} near no passage and may have an answer all the same.` : ""}`),
      h("div", { class: "coverage", role: "img", "aria-label": `${percent(first.share)} of the passages are touched` }, h("span", { style: { width: `${100 * first.share}%` } })),
      h("p", { class: "tabs" }, TABS.map(([value, name]) => h("a", { href: value ? `#coverage?show=${value}` : "#coverage", "aria-current": value === shown ? "true" : null }, name))),
      first.total ? growing(first, load, row, "ul", "plain covered") : h("p", { class: "dim" }, "Nothing here.")),
  };
}

// A question that is not answered, or near no passage, to be asked all the same.
function asked(each, canAsk) {
  const text = canAsk ? h("a", { class: "question", href: link("ask", "", { q: each.question }), "data-stop": true }, each.question) : h("span", { class: "question" }, each.question);
  return h("li", {}, h("div", { class: "branch" }, text));
}

function community(each, mayAdd) {
  const rows = h("div", { class: "offered" });
  const button = h("button", { type: "button", onclick: offer }, "Offer questions");
  const name = each.question || each.title || each.document_id;

  async function offer() {
    button.disabled = true;
    button.textContent = "Asking ...";
    try {
      const made = await source.post("coverage/rows", { community_id: each.id });
      replace(rows, made.items.length ? h("ul", { class: "plain" }, made.items.map((row) => offered(row, mayAdd))) : h("p", { class: "dim" }, "No question could be made of these passages."));
      button.remove();
    } catch (error) {
      replace(rows, h("p", { class: "error", role: "alert" }, error.message));
      button.disabled = false;
      button.textContent = "Offer questions";
    }
  }

  return h("li", {},
    h("div", { class: "branch" },
      h("a", { class: "question", href: each.document_id ? link("document", each.document_id) : link("community", each.id), "data-stop": true, title: each.title }, name),
      h("span", { class: "facts" }, `${count(each.n_passages, "passage")} · ${each.questions ? `touched by ${count(each.questions, "question")}` : "never touched"}`),
      each.questions ? null : button),
    rows);
}

function offered(row, mayAdd) {
  const problem = h("p", { class: "error", role: "alert" });
  const button = h("button", { type: "button", onclick: add }, "Add to the test set");

  async function add() {
    button.disabled = true;
    try {
      await source.post(`testset/${encodeURIComponent(row.id)}`, { action: "add" });
      button.textContent = "Added";
    } catch (error) {
      button.disabled = false;
      replace(problem, error.message);
    }
  }

  return h("li", {},
    h("p", { class: "question" }, row.question),
    h("p", { class: "facts" }, row.answers.join("; "), row.passages.length ? [" · ", h("a", { href: link("document", row.passages[0].document_id, { passage: row.passages[0].chunk_id }) }, row.passages[0].title || row.passages[0].document_id)] : null),
    mayAdd ? button : null, problem);
}
