// Shows the OpenAPI document as a page, with a way to try what only reads.

import { h, put, replace } from "./dom.js";
import { tokenFrom } from "./token.js";

const main = document.getElementById("main");
let token = sessionStorage.getItem("kraq-token") || "";

async function fetched(address) {
  const response = await fetch(address, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  if (response.status !== 401) return response;
  token = await tokenFrom(Boolean(token));
  sessionStorage.setItem("kraq-token", token);
  return fetched(address);
}

function operation(path, method, each, schemas) {
  const bodySchema = each.requestBody && schemas[each.requestBody.content["application/json"].schema.$ref.split("/").pop()];
  const fields = each.parameters.map((one) => ({ name: one.name, where: one.in, kind: kindOf(one.schema), what: one.description || "" }))
    .concat(bodySchema ? Object.entries(bodySchema.properties).map(([name, one]) => ({ name, where: (bodySchema.required || []).includes(name) ? "body, required" : "body", kind: kindOf(one), what: one.description || "" })) : []);
  return h("details", { class: "operation", id: each.operationId },
    h("summary", {}, h("b", { class: "method" }, method.toUpperCase()), " ", h("code", {}, path), h("span", { class: "dim" }, ` ${each.summary}`)),
    fields.length ? h("table", { class: "fields" }, h("tbody", {}, fields.map((one) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, one.name)), h("td", { class: "dim" }, one.where), h("td", { class: "dim" }, one.kind), h("td", {}, one.what))))) : null,
    method === "get" ? tryIt(path, each) : h("pre", {}, `curl ${location.origin}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(exampleOf(each.operationId))}'`));
}

function kindOf(schema) {
  const kinds = (schema.anyOf || [schema]).map((one) => one.type || (one.enum || []).join(" | ") || (one.$ref || "").split("/").pop()).filter((one) => one !== "null");
  return [...new Set(kinds)].join(" or ") + (schema.default !== undefined && schema.default !== null && schema.default !== "" ? ` (${JSON.stringify(schema.default)})` : "");
}

function exampleOf(name) {
  return { ask: { question: "Who wrote Ulysses?" }, chat: { model: "combined", messages: [{ role: "user", content: "Who wrote Ulysses?" }] }, review: { action: "approve", version: 1 } }[name];
}

function tryIt(path, each) {
  const inputs = each.parameters.map((one) => h("input", { name: one.name, placeholder: one.name, "aria-label": one.name, required: one.required }));
  const shown = h("pre", { hidden: true });
  return h("form", { onsubmit: async (event) => {
    event.preventDefault();
    let address = path;
    const query = new URLSearchParams();
    each.parameters.forEach((one, place) => {
      const value = inputs[place].value.trim();
      if (one.in === "path") address = address.replace(`{${one.name}}`, encodeURIComponent(value));
      else if (value) query.set(one.name, value);
    });
    const response = await fetched(`..${address}${query.size ? `?${query}` : ""}`);
    const text = await response.text();
    let pretty = text;
    if ((response.headers.get("content-type") || "").includes("json")) pretty = JSON.stringify(JSON.parse(text), null, 2);
    shown.hidden = false;
    replace(shown, `${response.status}\n${pretty.slice(0, 20000)}`);
  } }, h("div", { class: "row" }, inputs, h("button", {}, "Try")), shown);
}

const described = await (await fetched("../api/openapi.json")).json();
const groups = new Map();
for (const [path, methods] of Object.entries(described.paths)) {
  for (const [method, each] of Object.entries(methods)) {
    const tag = each.tags[0];
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push(operation(path, method, each, described.components.schemas));
  }
}
replace(main, put(h("div", { class: "page narrow" }), [
  h("h1", {}, "The API"),
  h("p", { class: "lead" }, described.info.description, described.security.length ? " Send the token with each request: Authorization: Bearer TOKEN." : ""),
  h("p", {}, h("a", { href: "../api/openapi.json" }, "The OpenAPI document"), `, version ${described.info.version}. Chat front ends take ${location.origin}/v1 as an OpenAI address.`),
  [...groups].map(([tag, operations]) => [h("h2", {}, tag), operations]),
]));
