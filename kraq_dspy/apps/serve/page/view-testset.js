// Reviews the rows of a test set by keyboard: y approves, n rejects, e edits, u takes a decision back.

import { count, h, link, replace, say } from "./dom.js";
import { source } from "./source.js";

const STATUSES = [["waiting", "Waiting"], ["approved", "Approved"], ["rejected", "Rejected"]];

export async function viewTestset({ id, query, status }) {
  const shown = query.get("status") || "waiting";
  const page = await source.get("testset", { status: shown, limit: 200 });
  const at = Math.max(0, page.items.findIndex((each) => each.id === id));
  const chosen = page.items[at];
  const row = chosen ? await source.get(`testset/${encodeURIComponent(chosen.id)}`) : null;
  const place = (each) => link("testset", each.id, { status: shown === "waiting" ? "" : shown });
  const list = h("ul", { class: "entries" }, page.items.map((each) => h("li", {},
    h("a", { href: place(each), "aria-current": each === chosen ? "true" : null },
      h("span", {}, each.question), h("span", { class: "dim" }, ` ${each.type}`), each.status === "stale" ? h("span", { class: "state stale" }, "stale") : null))));
  const card = row ? reviewed(row, { edit: status.edit, goOn }) : null;

  // To the row behind the decided one, or the one before it at the end of the list.
  function goOn(decided) {
    say(`${decided}.`);
    const next = page.items[at + 1] || page.items[at - 1];
    const goal = next ? place(next) : `#testset${shown === "waiting" ? "" : `?status=${shown}`}`;
    if (location.hash === goal) dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = goal;
  }

  function step(by) {
    const next = page.items[at + by];
    if (next) location.hash = place(next);
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    if (event.key === "j" || event.key === "k") {
      event.stopImmediatePropagation();
      step(event.key === "j" ? 1 : -1);
    } else if (card && card.keys[event.key]) {
      event.preventDefault();
      card.keys[event.key]();
    }
  }

  addEventListener("keydown", keys, true);
  return {
    title: "Test set",
    leave: () => removeEventListener("keydown", keys, true),
    ready: () => { const current = list.querySelector("[aria-current]"); if (current) current.scrollIntoView({ block: "nearest" }); },
    node: h("div", { class: "page" },
      h("h1", {}, "Test set"),
      h("p", { class: "lead" }, `${page.file}: ${count(page.counts.waiting, "row")} to decide, ${page.counts.approved} approved, ${page.counts.rejected} rejected. `,
        status.edit ? h("span", { class: "hint" }, ["y", "n", "e", "u", "j", "k"].map((key, place) => h("span", {}, h("kbd", {}, key), ["approve", "reject", "edit", "undo", "next", "previous"][place]))) : "This page is read-only: start it with --edit to review."),
      h("p", { class: "tabs" }, STATUSES.map(([value, name]) => h("a", { href: value === "waiting" ? "#testset" : `#testset?status=${value}`, "aria-current": value === shown ? "true" : null }, name, h("span", { class: "dim" }, ` ${page.counts[value]}`)))),
      h("div", { class: "review" }, page.total ? list : h("p", { class: "dim" }, shown === "waiting" ? "All is decided." : "Nothing here."), card ? card.node : null)),
  };
}

// One row with its decisions. `goOn` is told what was decided.
function reviewed(row, { edit, goOn }) {
  const question = h("textarea", { rows: "2", "aria-label": "Question", readonly: true });
  const answers = h("textarea", { rows: "3", "aria-label": "Answers, one a line", readonly: true });
  const problem = h("p", { class: "error", role: "alert" });
  const decided = row.status === "approved" || row.status === "rejected";
  const writing = h("div", { class: "row", hidden: true },
    h("button", { type: "button", class: "primary", onclick: () => decide("edit") }, "Save and approve ", h("kbd", {}, "Ctrl Enter")),
    h("button", { type: "button", onclick: () => write(false) }, "Leave ", h("kbd", {}, "Esc")));
  const deciding = h("div", { class: "row" },
    h("button", { type: "button", class: "primary", onclick: () => decide("approve"), disabled: row.status === "approved" }, "Approve ", h("kbd", {}, "y")),
    h("button", { type: "button", onclick: () => write(true) }, "Edit ", h("kbd", {}, "e")),
    h("button", { type: "button", class: "danger", onclick: () => decide("reject"), disabled: row.status === "rejected" }, "Reject ", h("kbd", {}, "n")),
    decided ? h("button", { type: "button", onclick: () => decide("undo") }, "Undo ", h("kbd", {}, "u")) : null);
  let busy = false;
  fill();

  function fill() {
    question.value = row.question;
    answers.value = row.answers.join("\n");
  }

  async function decide(action) {
    if (busy || (action !== "edit" && !writing.hidden)) return; // what is being written is not lost to a key
    busy = true;
    replace(problem);
    const lines = answers.value.split("\n").map((each) => each.trim()).filter(Boolean);
    try {
      await source.post(`testset/${encodeURIComponent(row.id)}`, { action, version: row.version, ...(action === "edit" ? { question: question.value, answers: lines } : {}) });
      goOn({ approve: "Approved", edit: "Saved and approved", reject: "Rejected", undo: "Taken back" }[action]);
    } catch (error) {
      replace(problem, error.message);
    } finally {
      busy = false;
    }
  }

  function write(is) {
    for (const field of [question, answers]) field.readOnly = !is;
    writing.hidden = !is;
    deciding.hidden = is; // "Approve" would leave out what was written
    replace(problem);
    if (is) question.focus();
    else { fill(); document.getElementById("main").focus({ preventScroll: true }); }
  }

  function typed(event) {
    if (event.key === "Escape") write(false);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); decide("edit"); }
  }

  for (const field of [question, answers]) if (edit) field.addEventListener("keydown", typed);
  const foundBy = row.solved_by.length ? ` · found by ${row.solved_by.join(", ")}` : row.answers.length ? " · found by no retriever alone" : "";
  return {
    keys: edit ? { y: () => decide("approve"), n: () => decide("reject"), e: () => write(true), ...(decided ? { u: () => decide("undo") } : {}) } : {},
    node: h("article", { class: "entry", "aria-label": row.question },
      h("p", { class: "facts" }, h("span", { class: `state ${row.status}` }, row.status), ` ${row.type}`, foundBy, ` · ${Math.round(100 * row.overlap)} % of its words stand in its passages`),
      h("label", {}, h("span", {}, "Question"), question),
      h("label", {}, h("span", {}, row.answers.length ? "Answers, one a line" : "Answers: none, the documents must not answer it"), answers),
      edit ? [writing, deciding] : null,
      problem,
      row.passages.length ? h("div", {}, h("h3", {}, row.answers.length ? count(row.passages.length, "passage that answers it", "passages that answer it") : `${count(row.passages.length, "passage")} hidden from whoever is asked`), row.passages.map((each) => h("article", { class: "passage" }, h("header", {}, h("a", { href: link("document", each.document_id, { passage: each.chunk_id }) }, each.title || each.document_id)), h("p", { class: "text" }, each.text || "This text is not there any more.")))) : null,
      h("p", { class: "notes" }, row.checks.length ? `Checks that it passed: ${row.checks.join(", ")}. ` : "", row.model ? `Asked by ${row.model}.` : "")),
  };
}
