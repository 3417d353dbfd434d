// Says when the server stopped answering; what was received last stays on the page.

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
      return;
    }
    this.#downSince ??= Date.now();
    const since = new Date(this.#downSince).toISOString().slice(11, 19);
    const words = error.status === 401
      ? "The session has ended: reload the page to log in again. Showing what was last received."
      : `Server not answering since ${since} UTC (${error.message}); showing what was last received.`;
    if (this.text.textContent !== words) this.text.textContent = words;
    this.banner.hidden = false;
  }
}
