// Refreshes everything on the page together, at the chosen pace, and backs off while the server does not answer.

import { nextDelaySeconds } from "./pacing.js";

export class Refresher {
  #tasks = new Set();
  #timer = null;
  #failures = 0;
  #round = 0;

  /** `choice()` gives the pace in seconds or "off"; `report({error})` is called after each round. */
  constructor(choice, report) {
    this.choice = choice;
    this.report = report;
    document.addEventListener("visibilitychange", () => this.#visibilityChanged());
  }

  /** Add a task: an async function that throws FetchError. Returns a function that removes it. */
  add(task) {
    this.#tasks.add(task);
    return () => this.#tasks.delete(task);
  }

  /** Run all tasks now; a newer round takes over the timer from an older one. */
  async run() {
    clearTimeout(this.#timer);
    const round = ++this.#round;
    const results = await Promise.allSettled([...this.#tasks].map((task) => task()));
    if (round !== this.#round) return;
    const error = results.map((result) => result.reason).find((reason) => reason?.isServerDown) ?? null;
    this.#failures = error ? this.#failures + 1 : 0;
    this.report({ error });
    this.#schedule();
  }

  #schedule() {
    clearTimeout(this.#timer);
    const seconds = nextDelaySeconds(this.choice(), this.#failures);
    if (seconds !== null && !document.hidden) this.#timer = setTimeout(() => this.run(), seconds * 1000);
  }

  #visibilityChanged() {
    if (document.hidden) clearTimeout(this.#timer);
    else if (nextDelaySeconds(this.choice(), 0) !== null) this.run();
  }
}
