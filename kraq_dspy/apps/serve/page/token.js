// Asks the reader for the server's token.

import { h } from "./dom.js";

export function tokenFrom(wasWrong) {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", name: "token", required: true, autocomplete: "current-password", "aria-label": "Token" });
    const dialog = h("dialog", { class: "token" },
      h("form", { method: "dialog", onsubmit: () => { resolve(field.value.trim()); dialog.remove(); } },
        h("h2", {}, "This server asks for a token"),
        h("p", {}, wasWrong ? "That was not the right one. It is what the server was started with." : "It is what the server was started with: --token, or KRAQ_TOKEN."),
        h("div", { class: "row" }, field, h("button", { class: "primary" }, "Open"))));
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
  });
}
