// The first view: the corpus's questions by size, the largest groups first, as a map and as a tree.

import { count, h, link, number, replace } from "./dom.js";
import { communityMap } from "./map.js";
import { answering, growing, questionRow, suggested, wordsOf } from "./parts.js";
import { source } from "./source.js";

const PAGE = 40;

export async function viewHome({ query, status }) {
  const level = query.get("level");
  const { counts } = status;
  const body = h("div", { class: "questions" });
  const levels = status.levels.filter((each) => each.questions);
  const names = levels.map((each, place) => [String(each.level), place === 0 ? "Broadest" : place === levels.length - 1 ? "Narrowest" : `Level ${each.level}`, each.questions]);
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Which questions" },
    [["", "By size, the largest groups first", null], ...names].map(([value, name, questions]) => h("a", {
      href: value ? link("", "", { level: value }) : "#", "aria-current": (level || "") === value ? "true" : null,
    }, name, questions === null ? null : h("span", { class: "dim" }, ` ${number(questions)}`))));
  if (level) {
    const load = (offset) => source.get("questions", { level, offset, limit: PAGE });
    const first = await load(0);
    replace(body, first.total ? growing(first, load, (each) => questionRow(each)) : h("p", { class: "dim" }, "No questions on this level."));
  } else {
    const [several, single] = [false, true].map((single) => (offset) => source.get("communities", { level: 0, telling: true, single, offset, limit: PAGE }));
    const [broad, alone] = [await several(0), await single(0)];
    replace(body, broad.total || alone.total ? null : nothing(status),
      broad.total ? growing(broad, several, branch, "ul", "tree") : null,
      alone.total ? h("details", { open: !broad.total },
        h("summary", {}, `${count(alone.total, "question")} about a single passage`), growing(alone, single, branch, "ul", "tree")) : null);
  }
  const questions = status.levels.reduce((sum, each) => sum + each.questions, 0);
  const begin = !level && counts.questions ? (await source.get("starters", { limit: 12 })).items : [];
  const map = !level && counts.communities > 2 ? await communityMap() : null;
  return {
    title: level ? `Questions of level ${level}` : "",
    node: h("div", { class: "page home" },
      h("header", { class: "hero" },
        h("h1", {}, counts.questions ? h("span", {}, `What ${count(counts.documents, "document")} can answer`) : status.index),
        h("p", { class: "lead" }, `${count(questions, "question")} over ${count(counts.chunks, "passage")} and ${count(counts.entities, "entity", "entities")}, written by ${status.models.map((name) => name === "embedded" ? "the embedded model" : name).join(", ") || "no model"}.`,
          status.complete ? null : h("strong", {}, " The index is unfinished: more will come."))),
      begin.length ? h("section", { class: "starters" }, h("h2", {}, "To begin with"), h("ul", {}, begin.map((each) => suggested(each, status)))) : null,
      map && map.node,
      tabs,
      body),
    ready: map ? map.ready : null,
    leave: map ? map.leave : null,
  };
}

function nothing(status) {
  return h("p", { class: "lead" }, status.counts.chunks
    ? "This index has no communities, and so no questions. Its passages can be searched and asked about."
    : "This index is empty.");
}

// A community as a line that opens to the ones within it.
function branch(each) {
  const inside = h("ul", { class: "tree", hidden: true });
  const name = wordsOf(each) || `${count(each.n_entities, "entity", "entities")} without a question`;
  const toggle = each.n_children
    ? h("button", { class: "toggle", "aria-expanded": "false", "aria-label": `What is inside: ${name}`, onclick: open })
    : h("span", { class: "toggle leaf", "aria-hidden": "true" });

  async function open() {
    const isOpen = toggle.getAttribute("aria-expanded") === "true";
    toggle.setAttribute("aria-expanded", String(!isOpen));
    inside.hidden = isOpen;
    if (!isOpen && !inside.childElementCount) {
      const load = (offset) => source.get("communities", { parent: each.id, telling: true, offset, limit: PAGE });
      inside.append(h("li", {}, growing(await load(0), load, branch, "ul", "tree")));
    }
  }

  return h("li", {},
    h("div", { class: "branch" }, toggle,
      h("a", { class: each.question ? "question" : "question none", href: link("community", each.id), "data-stop": true }, name),
      h("span", { class: "facts" }, answering(each), each.n_children ? ` · ${each.n_children} inside` : "")),
    each.n_children ? inside : null);
}
