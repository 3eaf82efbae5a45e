// Reviews the FAQ cache: approve, edit, reject.

import { count, h, link, replace } from "./dom.js";
import { source } from "./source.js";

const STATUSES = [["waiting", "Waiting"], ["approved", "Approved"]];

export async function viewReview({ id, query, status }) {
  const shown = query.get("status") || "waiting";
  const page = await source.get("faq", { status: shown, limit: 100 });
  const entry = id ? await source.get(`faq/${encodeURIComponent(id)}`) : null;
  const list = h("ul", { class: "entries" }, page.items.map((each) => h("li", {},
    h("a", { href: link("review", each.number, { status: shown === "waiting" ? "" : shown }), "data-stop": true, "aria-current": String(each.number) === id ? "true" : null },
      h("span", {}, each.question), h("span", { class: `state ${each.status}` }, each.status), each.asked ? h("span", { class: "dim" }, ` failed ${count(each.asked, "time")}`) : null))));
  return {
    title: "Review",
    node: h("div", { class: "page" },
      h("h1", {}, "Prepared answers"),
      h("p", { class: "lead" }, "Questions with an answer that somebody approved are answered at once, by the program qa-search.", status.edit ? "" : " This page is read-only: start it with --edit to review."),
      h("p", { class: "tabs" }, STATUSES.map(([value, name]) => h("a", { href: value === "waiting" ? "#review" : `#review?status=${value}`, "aria-current": value === shown ? "true" : null }, name))),
      h("div", { class: "review" },
        page.total ? list : h("p", { class: "dim" }, page.exists ? "Nothing here: all is decided." : "There is no FAQ cache yet. Begin one: kraq faq seed DIR"),
        entry ? one(entry, status.edit, page) : page.total ? h("p", { class: "dim" }, "Choose an entry.") : null)),
  };
}

function one(entry, edit, page) {
  const answer = h("textarea", { rows: "5", "aria-label": "Answer", readonly: !edit });
  answer.value = entry.answer;
  const sources = h("input", { "aria-label": "Documents it rests on", readonly: !edit, placeholder: "document ids, with semicolons" });
  sources.value = entry.sources.map((each) => each.document_id).join("; ");
  const problem = h("p", { class: "error", role: "alert" });
  const act = (action) => async () => {
    replace(problem);
    const ids = sources.value.split(";").map((each) => each.trim()).filter(Boolean);
    const body = { action, version: entry.version, ...(action === "edit" ? { answer: answer.value, document_ids: ids } : {}) };
    try {
      await source.post(`faq/${entry.number}`, body);
    } catch (error) {
      replace(problem, error.message);
      return;
    }
    const at = page.items.findIndex((each) => each.number === entry.number);
    const next = page.items[at + 1] || page.items[at - 1];
    const goal = next ? link("review", next.number) : "#review";
    if (location.hash === goal) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = goal;
  };
  return h("article", { class: "entry" },
    h("h2", { class: "question" }, entry.question),
    h("p", { class: "facts" }, h("span", { class: `state ${entry.status}` }, entry.status), ` entry ${entry.number}, version ${entry.version}, from ${entry.origin}`),
    h("label", {}, h("span", {}, "Answer"), answer),
    h("label", {}, h("span", {}, "Rests on"), sources),
    entry.sources.length ? h("ul", { class: "plain short" }, entry.sources.map((each) => h("li", {}, h("a", { href: link("document", each.document_id) }, each.title || each.document_id), each.state === "as it was" ? null : h("strong", { class: "bad" }, ` ${each.state}`)))) : null,
    edit ? h("div", { class: "row" },
      h("button", { class: "primary", onclick: act("approve"), disabled: !entry.answer || entry.status === "approved" }, "Approve"),
      h("button", { onclick: act("edit") }, "Save and approve"),
      h("button", { class: "danger", onclick: act("reject") }, "Reject")) : null,
    problem,
    entry.given ? h("div", {}, h("h3", {}, "A program said"), h("p", { class: "text" }, entry.given)) : null,
    entry.evidence.length ? h("div", {}, h("h3", {}, "Evidence"), entry.evidence.map((each) => h("article", { class: "passage" }, h("header", {}, h("a", { href: link("document", each.document_id, { passage: each.chunk_id }) }, each.document_id)), h("p", { class: "text" }, each.text)))) : null,
    h("p", { class: "notes" }, `Version ${entry.version}`, entry.changed_by ? ` by ${entry.changed_by}` : "", entry.changed_at ? `, ${entry.changed_at.slice(0, 16).replace("T", " ")}` : ""));
}
