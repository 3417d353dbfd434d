// The editor of a rule: what is typed is checked a moment later; "Try on history" and "Save" ask first for the same.

import { fragment } from "./fetching.js";
import { panelLayout } from "./figure-layout.js";
import { loadPlotly } from "./plotly-loader.js";
import { theme } from "./theme.js";

const PAUSE_MS = 700;
const QUESTIONS = { check: "Checking…", backtest: "Trying on history…", save: "Saving…" };

/** Wire the editor, where there is one. */
export function startRuleEditor() {
  const form = document.querySelector("[data-rule-editor]");
  if (form) new Editor(form).start();
}

class Editor {
  #timer = null;
  #request = null;

  constructor(form) {
    this.form = form;
    this.place = document.querySelector("[data-editor-answer]");
    this.status = form.querySelector("[data-editor-status]");
  }

  start() {
    this.form.elements.text.addEventListener("input", () => this.#later());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask("save");
    });
    this.form.querySelector("[data-action=backtest]").addEventListener("click", () => this.ask("backtest"));
    this.ask("check");
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.ask("check"), PAUSE_MS);
  }

  /** Ask; a newer question takes the place of an older one, but nothing takes that of "save". */
  async ask(action) {
    clearTimeout(this.#timer);
    if (this.#request?.action === "save") return;
    this.#request?.abort.abort();
    const request = { action, abort: new AbortController() };
    this.#request = request;
    this.status.textContent = QUESTIONS[action];
    try {
      const answer = await fragment("/fragments/alerts/rule", this.#question(action), request.abort.signal);
      if (request === this.#request) this.#show(answer);
    } catch (error) {
      if (request === this.#request) this.status.textContent = error.message;
    } finally {
      if (request === this.#request) this.#request = null;
    }
  }

  #question(action) {
    const { text, from, server } = this.form.elements;
    const { name, version } = this.form.dataset;
    return { action, text: text.value, name, version: Number(version), from: from.value, server: server?.value ?? "", theme: theme() };
  }

  #show(answer) {
    const saved = answer.querySelector("[data-saved]")?.dataset.saved;
    this.status.textContent = saved ? "Saved." : "";
    this.place.replaceChildren(...answer.body.childNodes);
    const picture = this.place.querySelector("[data-figure]");
    if (picture) draw(picture);
    if (saved) location.assign(`/alerts/edit?${new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(location.search)), name: saved })}`);
  }
}

async function draw(place) {
  const { data, layout } = JSON.parse(place.dataset.figure);
  const plotly = await loadPlotly();
  const names = data.map((trace) => trace.name ?? "");
  const size = { width: place.clientWidth, height: place.clientHeight, names };
  await plotly.newPlot(place, data, panelLayout(layout, size), { displayModeBar: false, responsive: true });
}
