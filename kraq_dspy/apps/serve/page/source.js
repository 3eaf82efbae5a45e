// Where the data come from: the server of this page.

import { tokenFrom } from "./token.js";

const CHANGING = /^(faq|testset|desk|coverage|label)/; // what a decision, here or elsewhere, may have changed

export const source = httpSource();

export function indexName() {
  return new URLSearchParams(location.search).get("index") || "";
}

function httpSource() {
  const known = new Map();
  let token = sessionStorage.getItem("kraq-token") || "";

  async function request(path, options = {}) {
    const headers = { ...(options.headers || {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const response = await fetch(path, { ...options, headers });
    if (response.status === 401) {
      token = await tokenFrom(Boolean(token));
      sessionStorage.setItem("kraq-token", token);
      return request(path, options);
    }
    if (!response.ok) throw await failure(response);
    return response;
  }

  return {
    async get(path, parameters = {}) {
      const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
      if (indexName()) query.set("index", indexName());
      const address = `api/${path}${query.size ? `?${query}` : ""}`;
      if (known.has(address)) return known.get(address);
      const value = await (await request(address)).json();
      if (known.size > 200) known.delete(known.keys().next().value);
      if (!CHANGING.test(path)) known.set(address, value);
      return value;
    },

    async post(path, body) {
      const response = await request(`api/${path}`, posted(body));
      known.clear();
      dispatchEvent(new Event("kraq-changed"));
      return response.json();
    },

    // Calls `on(event, data)` for each event of the answer, until it is complete or `signal` says to stop.
    async ask(body, on, signal) {
      const response = await request("api/ask", { ...posted({ ...body, stream: true }), signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const name = /^event: (.*)$/m.exec(block);
          const data = /^data: (.*)$/m.exec(block);
          if (name && data) on(name[1], JSON.parse(data[1]));
        }
      }
    },
  };
}

function posted(body) {
  const value = indexName() ? { ...body, index: indexName() } : body;
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) };
}

async function failure(response) {
  let message = `The server answers ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // Not from our server, perhaps from something in front of it: the number says what there is to say.
  }
  const error = new Error(message);
  error.status = response.status;
  return error;
}
