// Makes elements. Text is always a text node, so nothing of an index is ever read as markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  return fill(element, attributes, children);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, children);
  return element;
}

export function put(element, children) {
  for (const child of [children].flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return put(element, children);
}

const grouped = new Intl.NumberFormat("en");

export function count(number, one, many = `${one}s`) {
  return `${grouped.format(number)} ${number === 1 ? one : many}`;
}

export function number(value) {
  return grouped.format(value);
}

export function percent(share) {
  const rest = Math.min(share, 1 - share); // 612 of 614 are 99.6 %, not 100
  return `${rest > 0 && rest < 0.1 ? (Math.floor(1000 * share) / 10).toFixed(1) : (100 * share).toFixed(0)} %`;
}

export function say(text) {
  document.getElementById("live").textContent = text;
}

export function link(kind, id, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  const path = id ? `${kind}/${encodeURIComponent(id)}` : kind;
  return `#${path}${query ? `?${query}` : ""}`;
}

// A number from 0 to 7 for a type of entity, always the same one for the same word.
const KNOWN = ["person", "place", "organisation", "event", "work", "product", "concept"];

export function hue(type) {
  const word = String(type || "").toLowerCase().replace("organization", "organisation");
  const place = KNOWN.indexOf(word);
  if (place >= 0) return place;
  let sum = 0;
  for (const letter of word) sum = (sum * 31 + letter.codePointAt(0)) % 8;
  return word ? sum : 7;
}

export function dot(type) {
  return h("span", { class: `dot hue${hue(type)}`, "aria-hidden": "true" });
}

// Text with its mentions as links, and Markdown's marks for headings and stress hidden. `mentions` count characters as
// Python does, in code points.
export function marked(text, mentions, types = {}) {
  return linked(text, mentions || [], types).flatMap((part) => typeof part === "string" ? unmarked(part) : [part]);
}

function unmarked(text) {
  return text.split(/(^ {0,3}#{1,6} |\*\*)/m).map((part, place) => place % 2 ? h("span", { hidden: true }, part) : part);
}

function linked(text, mentions, types) {
  if (!mentions.length) return [text];
  const points = Array.from(text);
  const parts = [];
  let at = 0;
  for (const mention of mentions) {
    if (mention.start < at) continue;
    parts.push(points.slice(at, mention.start).join(""));
    const words = points.slice(mention.start, mention.end).join("");
    const type = types[mention.entity_id];
    parts.push(h("a", { class: type === undefined ? "mention" : `mention hue${hue(type)}`, href: link("entity", mention.entity_id) }, words));
    at = mention.end;
  }
  parts.push(points.slice(at).join(""));
  return parts;
}
