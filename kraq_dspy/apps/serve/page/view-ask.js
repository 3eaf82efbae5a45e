// Ask: one program or two side by side, as the answer comes, with what it rests on.

import { count, h, link, number, replace, say } from "./dom.js";
import { passage, suggested } from "./parts.js";
import { source } from "./source.js";

const STAGES = 6; // colours of the bar of times

export async function viewAsk({ query, status }) {
  const question = h("textarea", { name: "question", rows: "2", required: true, maxlength: "4000", "aria-label": "Question", placeholder: "What do you want to know?" });
  question.value = query.get("q") || "";
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  const first = choice("Program", status.programs, query.get("p") || status.default_program);
  const second = choice("Beside it", [{ name: "", help: "Nothing" }, ...status.programs], query.get("vs") || "");
  const retriever = choice("Retriever", [{ name: "", help: `${status.default_retriever}, which suits the index` }, ...status.retrievers], query.get("r") || "");
  const help = h("p", { class: "dim help" });
  const button = h("button", { class: "primary" }, "Ask");
  const answers = h("div", { class: "answers" });
  const conversation = h("section", { class: "conversation", "aria-label": "Conversation", hidden: true });
  let turns = []; // what was said before, for one program at a time
  let abort = null;

  function explain() {
    const told = [first, second].map((each) => status.programs.find((one) => one.name === each.value)).filter(Boolean);
    replace(help, told.map((each) => h("span", {}, h("b", {}, each.name), ` ${each.help} `, each.prepared_by.length ? h("span", {}, "Needs ", h("code", {}, each.prepared_by.join(", ")), " once. ") : null)));
  }

  const form = h("form", { class: "ask", onsubmit: (event) => { event.preventDefault(); if (abort) abort.abort(); else run(); } },
    question,
    h("div", { class: "row" }, labelled("Program", first), labelled("Beside it", second), labelled("Retriever", retriever), button),
    help);
  for (const each of [first, second]) each.addEventListener("change", explain);
  explain();

  function begin() {
    turns = [];
    showTurns();
    question.focus();
  }

  function showTurns() {
    conversation.hidden = !turns.length;
    replace(conversation,
      turns.map((turn) => h("details", {}, h("summary", {}, turn.question), h("p", {}, turn.answer))),
      h("p", { class: "dim" }, "A question may refer to what was said. ", h("button", { type: "button", class: "link", onclick: begin }, "New conversation")));
  }

  async function run({ answerAnyway = false } = {}) {
    const text = question.value.trim();
    if (!text) return;
    const programs = [first.value, second.value].filter(Boolean);
    history.replaceState(null, "", link("ask", "", { q: text, p: first.value, vs: second.value, r: retriever.value }));
    abort = new AbortController();
    button.textContent = "Stop";
    const columns = programs.map((program) => column(program, () => run({ answerAnyway: true })));
    answers.className = `answers of${columns.length}`;
    replace(answers, columns.map((each) => each.node));
    const results = await Promise.all(columns.map((each) => each.run(text, retriever.value, takes(status, each.program), abort.signal, columns.length === 1 && each.program === status.default_program, columns.length === 1 ? turns : [], answerAnyway)));
    abort = null;
    button.textContent = "Ask";
    const [left, right] = results;
    if (left && columns.length === 1 && !left.refused) {
      turns = [...turns, { question: left.standalone_question || left.question, answer: left.answer }].slice(-20);
      showTurns();
    }
    if (left && right && !left.refused && !right.refused) columns.forEach((each, place) => each.compare(place ? left : right));
    say(results.some((each) => each && !each.refused) ? "The answer is there." : "There is no answer.");
  }

  return {
    title: "Ask",
    leave: () => { if (abort) abort.abort(); },
    ready: () => { question.focus(); if (query.get("go")) run(); },
    node: h("div", { class: "page" }, h("h1", {}, "Ask"), conversation, form, answers),
  };
}

function takes(status, program) {
  const spec = status.programs.find((each) => each.name === program);
  return Boolean(spec && spec.takes_retriever);
}

function choice(name, options, value) {
  const select = h("select", { "aria-label": name }, options.map((each) => h("option", { value: each.name, title: each.help, selected: each.name === value }, each.name || each.help)));
  return select;
}

function labelled(name, control) {
  return h("label", {}, h("span", {}, name), control);
}

// One program's answer: what stage it is at, the text as it comes, then everything it rests on.
// `anyway` asks again what was refused.
function column(program, anyway) {
  const stage = h("p", { class: "stage", role: "status" }, "asking");
  const text = h("div", { class: "answer" });
  const rest = h("div", {});
  const node = h("section", { class: "column", "aria-label": program }, h("h2", {}, program), stage, text, rest);
  let cards = [];

  // Without a program the server gives an answer that was prepared, where there is one.
  async function run(question, retriever, takesRetriever, signal, isDefault, turns, answerAnyway) {
    let answer = null;
    let written = "";
    try {
      const body = { question, ...(turns.length ? { history: turns } : {}), ...(isDefault ? {} : { program }), ...(retriever && takesRetriever ? { retriever } : {}), ...(answerAnyway ? { no_refuse: true } : {}) };
      await source.ask(body, (event, data) => {
        if (event === "stage") stage.textContent = data.stage;
        else if (event === "text") { written += data.text; text.textContent = written; }
        else if (event === "error") throw new Error(data.error.message);
        else if (event === "answer") answer = data;
      }, signal);
      if (!answer) throw new Error("The answer broke off.");
      show(answer);
    } catch (error) {
      stage.remove();
      if (error.name === "AbortError") rest.append(h("p", { class: "dim" }, "Stopped."));
      else rest.append(h("p", { class: "error", role: "alert" }, error.message));
      return null;
    }
    return answer;
  }

  function show(answer) {
    stage.remove();
    text.textContent = answer.answer || "No answer.";
    if (answer.refused) return refused(answer);
    if (answer.standalone_question) text.before(h("p", { class: "dim" }, `Asked as: ${answer.standalone_question}`));
    const queries = [...new Set([question(answer), ...answer.hits.map((each) => each.query)])];
    const hue = new Map(queries.map((each, place) => [each, place % STAGES]));
    cards = answer.hits.map((hit, place) => ({ hit, node: passage(hit, { open: false, note: [
      h("span", { class: `query q${hue.get(hit.query)}`, title: `Found with: ${hit.query}` }, hit.why), hit.why === "dense" ? h("span", { class: "dim" }, Number(hit.score).toFixed(2)) : null, h("span", { class: "place" }, `${place + 1}`)] }) }));
    replace(rest,
      times(answer),
      answer.next_questions.length ? h("section", { class: "next" }, h("h3", {}, "Next"), h("ul", { class: "plain" }, answer.next_questions.map((each) => suggested(each, { can_ask: true })))) : null,
      found(answer, queries, hue),
      answer.notes.length ? h("details", {}, h("summary", {}, "How it came to this"), h("ul", { class: "notes" }, answer.notes.map((each) => h("li", {}, each.trim())))) : null,
      h("h3", {}, answer.hits.length ? count(answer.hits.length, "passage of evidence", "passages of evidence") : "No passages"),
      h("div", { class: "passages" }, cards.map((each) => each.node)));
  }

  // What stands in place of an answer: what the documents do answer, and a way to ask all the same.
  function refused(answer) {
    node.classList.add("refused");
    if (answer.standalone_question) text.before(h("p", { class: "dim" }, `Asked as: ${answer.standalone_question}`));
    replace(rest,
      answer.next_questions.length ? h("section", { class: "next" }, h("h3", {}, "They do answer"), h("ul", { class: "plain" }, answer.next_questions.map((each) => suggested(each, { can_ask: true })))) : null,
      h("p", {}, h("button", { type: "button", class: "anyway", onclick: anyway }, "Ask all the same")),
      answer.hits.length ? h("details", {}, h("summary", {}, "Nearest passages"), answer.notes.map((each) => h("p", { class: "dim" }, each)),
        h("div", { class: "passages" }, answer.hits.map((hit) => passage(hit, { open: false, note: h("span", { class: "dim" }, Number(hit.score).toFixed(2)) })))) : null);
  }

  // Marks what the other program had before it, too.
  function compare(other) {
    const theirs = new Set(other.hits.map((each) => each.id));
    for (const { hit, node: card } of cards) if (theirs.has(hit.id)) card.querySelector("header").append(h("span", { class: "both" }, "in both"));
  }

  return { node, run, compare, program };
}

function question(answer) {
  return answer.question;
}

function found(answer, queries, hue) {
  const counts = new Map();
  for (const hit of answer.hits) counts.set(hit.query, (counts.get(hit.query) || 0) + 1);
  const used = queries.filter((each) => counts.get(each));
  if (!used.length) return null;
  const stored = new Map((answer.details.auxiliary_questions || []).map((each) => [each.question.text, each]));
  return h("div", {}, h("h3", {}, used.length > 1 ? "What found what" : "Found with"), h("ul", { class: "queries" }, used.map((each) => {
    const aux = [...stored.values()].find((one) => each.startsWith(one.question.text));
    const words = aux && aux.question.community_id ? h("a", { href: link("community", aux.question.community_id) }, aux.question.text) : each;
    return h("li", {}, h("span", { class: `query q${hue.get(each)}` }, number(counts.get(each))), h("span", {}, words, aux ? h("span", { class: "dim" }, ` near your question by ${aux.similarity.toFixed(2)}`) : each === answer.question ? h("span", { class: "dim" }, " your question") : null));
  })));
}

function times(answer) {
  const { wall, ...stages } = answer.timings;
  const parts = Object.entries(stages).filter(([, seconds]) => seconds > 0.0005);
  const all = Math.max(wall, parts.reduce((sum, [, seconds]) => sum + seconds, 0)) || 1;
  const { calls, prompt_tokens: read, completion_tokens: written } = answer.usage;
  return h("div", { class: "times" },
    h("div", { class: "bar", role: "img", "aria-label": parts.map(([name, seconds]) => `${name} ${ms(seconds)}`).join(", ") },
      parts.map(([name, seconds], place) => h("span", { class: `part q${place % STAGES}`, title: `${name}: ${ms(seconds)}`, style: { width: `${(100 * seconds) / all}%` } }))),
    h("p", { class: "facts" }, h("b", {}, ms(wall)), parts.map(([name, seconds], place) => [" ", h("span", { class: `key q${place % STAGES}` }), `${name} ${ms(seconds)}`])),
    h("p", { class: "facts" }, `${answer.model} · ${count(calls, "call")} · ${number(read)} tokens read, ${number(written)} written`));
}

function ms(seconds) {
  return seconds >= 10 ? `${seconds.toFixed(1)} s` : seconds >= 1 ? `${seconds.toFixed(2)} s` : `${Math.round(1000 * seconds)} ms`;
}
