// Boots the page: the bar at the top, the views behind `#...`, and the keys.

import { h, link, replace, say } from "./dom.js";
import { searchBox } from "./search.js";
import { indexName, source } from "./source.js";
import { viewAsk } from "./view-ask.js";
import { viewCommunity } from "./view-community.js";
import { viewCoverage } from "./view-coverage.js";
import { viewDocument } from "./view-document.js";
import { viewEntity } from "./view-entity.js";
import { viewHome } from "./view-home.js";
import { viewLabel } from "./view-label.js";
import { viewReview } from "./view-review.js";
import { viewSearch } from "./view-search.js";
import { viewTestset } from "./view-testset.js";

const VIEWS = {
  "": viewHome,
  community: viewCommunity,
  entity: viewEntity,
  document: viewDocument,
  search: viewSearch,
  ask: viewAsk,
  review: viewReview,
  coverage: viewCoverage,
  testset: viewTestset,
  label: viewLabel,
};

const top = document.getElementById("top");
const main = document.getElementById("main");
let turn = 0;
let leave = null;

// "#community/ID?tab=x" as { kind, id, query }.
function route() {
  const [path, query] = location.hash.slice(1).split("?", 2);
  const [kind, ...rest] = path.split("/");
  let id = "";
  try {
    id = decodeURIComponent(rest.join("/"));
  } catch {
    id = rest.join("/");
  }
  return { kind, id, query: new URLSearchParams(query || "") };
}

async function show() {
  const { kind, id, query } = route();
  const mine = ++turn;
  if (leave) leave();
  leave = null;
  current(kind);
  main.setAttribute("aria-busy", "true");
  let view;
  try {
    if (!VIEWS[kind]) throw new Error("There is no such page. Follow a question from the start page.");
    view = await VIEWS[kind]({ id, query, status: await source.get("status") });
  } catch (error) {
    view = { title: "Not found", node: failed(error) };
  }
  if (mine !== turn) return;
  main.removeAttribute("aria-busy");
  leave = view.leave || null;
  document.title = view.title ? `${view.title} · kraq` : "kraq";
  replace(main, view.node);
  scrollTo(0, 0);
  if (view.ready) view.ready();
  main.focus({ preventScroll: true });
  say(view.title || "Questions");
}

function current(kind) {
  for (const each of top.querySelectorAll("nav a")) {
    if (each.dataset.kind === kind) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
}

function failed(error) {
  return h("section", { class: "page" },
    h("h1", {}, error.status === 404 ? "It is not in this index" : "That did not work"),
    h("p", { class: "lead" }, error.message),
    h("p", {}, h("a", { href: "#" }, "To the questions")));
}

function bar(status, desk) {
  const places = [["", "Questions"], ["ask", "Ask", !status.can_ask], ["coverage", "Coverage", !desk.coverage], ["testset", "Test set", !desk.testset], ["label", "Label", !desk.label], ["review", "Review", !status.faq]];
  const waits = { review: waiting(status), testset: desk.testset ? desk.testset.waiting : 0 };
  const others = status.indexes.length > 1 && h("select", { "aria-label": "Index", onchange: (event) => { location.href = `?index=${encodeURIComponent(event.target.value)}`; } },
    status.indexes.map((name) => h("option", { value: name, selected: name === (indexName() || status.index) }, name)));
  replace(top,
    h("button", { class: "skip", onclick: () => main.focus() }, "Skip to content"),
    h("a", { class: "brand", href: "#", title: "To the questions" }, h("span", { class: "logo", "aria-hidden": "true" }), others ? null : h("span", { class: "name" }, status.index)),
    others,
    searchBox(status),
    h("nav", { "aria-label": "Pages" }, places.filter(([, , hidden]) => !hidden).map(([kind, label]) => h("a", { href: kind ? link(kind) : "#", "data-kind": kind }, label,
      waits[kind] ? h("span", { class: "badge" }, waits[kind]) : null))),
    h("button", { class: "icon", onclick: theme, "aria-label": "Dark or light", title: "Dark or light (t)" }, "◐"));
}

function waiting(status) {
  return status.faq ? status.faq.pending + status.faq.stale : 0;
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("kraq-theme", root.dataset.theme);
  } catch {
    // A page from a file may have no storage: the choice holds until it is closed.
  }
  dispatchEvent(new Event("kraq-theme"));
}

const KEYS = [["/", "search"], ["h", "questions"], ["a", "ask"], ["c", "coverage"], ["s", "test set: y approves, n rejects, e edits, u takes back"], ["l", "label: 1 to 5 mark a passage, Enter takes the marks, n nothing answers, m more, f whole texts, s later, u takes back"], ["r", "review"], ["j  k", "next and previous question or passage"], ["t", "dark or light"], ["?", "these keys"]];

function keys() {
  const dialog = h("dialog", { onclose: () => dialog.remove() },
    h("h2", {}, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, key.split("  ").map((each) => h("kbd", {}, each))), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

function step(by) {
  const stops = [...main.querySelectorAll("[data-stop]")];
  if (!stops.length) return;
  const at = stops.indexOf(document.activeElement);
  const next = stops[Math.min(stops.length - 1, Math.max(0, at + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const places = { h: "#", a: "#ask", c: "#coverage", s: "#testset", l: "#label", r: "#review" };
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("search").focus();
  } else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "t") theme();
  else if (event.key === "?") keys();
  else if (places[event.key] !== undefined && top.querySelector(`nav [href="${places[event.key]}"]`)) location.hash = places[event.key];
});

addEventListener("hashchange", show);
addEventListener("kraq-changed", async () => {
  bar(await source.get("status"), await source.get("desk"));
  current(route().kind);
});
// One after the other: each would ask for a token of its own.
source.get("status").then(async (status) => { bar(status, await source.get("desk")); return show(); }).catch((error) => replace(main, failed(error)));
