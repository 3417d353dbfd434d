// Says when the server stopped answering; what was received last stays on the page.

import { troubleWords } from "./pacing.js";

export class Connection {
  #downSince = null;
  #lastGood = null;

  constructor(banner, retry) {
    this.banner = banner;
    this.text = banner.querySelector("[data-connection-text]");
    banner.querySelector("[data-connection-retry]").addEventListener("click", retry);
  }

  get lastGood() {
    return this.#lastGood;
  }

  report(error) {
    if (!error) {
      this.#downSince = null;
      this.#lastGood = Date.now();
      this.banner.hidden = true;
      delete document.documentElement.dataset.connection;
      return;
    }
    this.#downSince ??= Date.now();
    const words = troubleWords(error, this.#downSince);
    document.documentElement.dataset.connection = "lost"; // ages stand still: the style sheet greys them
    if (this.text.textContent !== words) this.text.textContent = words;
    this.banner.hidden = false;
  }
}
