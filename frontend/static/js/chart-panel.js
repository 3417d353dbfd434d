// <chart-panel name="accept-length">: fetches a figure and draws it; header and links are rendered by the server.

import { FetchError, get } from "./fetching.js";
import { describeFigure, isEmptyFigure, legendRows, panelLayout } from "./figure-layout.js";
import { pointsForWidth } from "./pacing.js";
import { loadPlotly } from "./plotly-loader.js";
import { setState, shownState } from "./state.js";
import { theme } from "./theme.js";
import { moveRange, parsePlotlyTime, rangeState, zoomedRange } from "./time-range.js";
import { figureUrl } from "./url-state.js";

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };

class ChartPanel extends HTMLElement {
  #request = null;
  #isNear = false;
  #range = null;

  connectedCallback() {
    this.area = this.querySelector(".chart-area");
    this.area.addEventListener("keydown", (event) => this.#key(event));
    this.#links();
    const watcher = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      watcher.disconnect();
      this.#isNear = true;
      this.refresh().catch((error) => this.dispatchEvent(new CustomEvent("panel-failed", { bubbles: true, detail: error })));
    }, { rootMargin: "200px" });
    watcher.observe(this);
  }

  disconnectedCallback() {
    this.#request?.abort();
  }

  /** Draw anew; panels far below the fold wait until they come near. Throws FetchError after showing it. */
  async refresh() {
    this.#links();
    if (!this.#isNear) return;
    this.#request?.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const options = { theme: theme(), points: pointsForWidth(this.area.clientWidth) };
    try {
      const url = figureUrl(this.getAttribute("name"), shownState(), options);
      const [plotly, response] = await Promise.all([loadPlotly(), get(url, signal)]);
      const figure = await response.json();
      if (!signal.aborted) await this.#draw(plotly, figure);
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  async #draw(plotly, figure) {
    const { meta } = figure.layout;
    const definition = this.querySelector("[data-definition]");
    if (definition && definition.textContent !== meta.definition) definition.textContent = meta.definition;
    this.area.querySelector(".chart-plot") ?? this.#makePlot();
    const plot = this.area.querySelector(".chart-plot");
    const names = figure.data.filter((trace) => trace.showlegend !== false).map((trace) => trace.name ?? "");
    const width = this.area.clientWidth;
    this.area.classList.toggle("tall", figure.layout.showlegend !== false && legendRows(names, width) > 2);
    await plotly.react(plot, figure.data, panelLayout(figure.layout, { width, height: this.area.clientHeight, names }), CONFIG);
    if (!plot.dataset.wired) this.#wire(plot);
    const { xaxis } = figure.layout;
    this.#range = xaxis.type === "date" ? xaxis.range.map(parsePlotlyTime) : null;
    const keys = this.#range ? " Arrows move in time, plus and minus zoom." : "";
    this.area.setAttribute("aria-label", `${describeFigure(meta.title, figure.data)}${keys}`);
    this.#message(isEmptyFigure(figure.data) ? "No data in this range." : "");
  }

  #makePlot() {
    const plot = document.createElement("div");
    plot.className = "chart-plot";
    this.area.append(plot);
  }

  #wire(plot) {
    plot.dataset.wired = "yes";
    plot.on("plotly_relayout", (change) => {
      const range = zoomedRange(change);
      if (range) setState(rangeState(...range), { isPlace: true });
    });
  }

  #fail(error) {
    const isDrawn = this.area.querySelector(".chart-plot");
    const isDown = error instanceof FetchError && error.isServerDown;
    // A drawn chart stays while the server is away (the banner says so); a question that it refuses is answered here.
    if (!(isDown && isDrawn)) this.#message(isDown ? "Waiting for the server." : error.message);
    if (isDrawn && !isDown) isDrawn.remove();
    throw error;
  }

  #message(text) {
    this.area.setAttribute("aria-busy", "false");
    this.area.querySelector(".chart-message")?.remove();
    if (!text) return;
    const message = document.createElement("p");
    message.className = "chart-message";
    message.append(Object.assign(document.createElement("span"), { textContent: text }));
    this.area.append(message);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.#range) return;
    const range = moveRange(...this.#range, event.key);
    if (!range) return;
    event.preventDefault();
    this.#range = range;
    setState(rangeState(...range), { isPlace: true });
  }

  #links() {
    for (const format of ["csv", "html"]) {
      const link = this.querySelector(`[data-${format}]`);
      if (link) link.href = figureUrl(this.getAttribute("name"), shownState(), { format, theme: theme() });
    }
  }
}

customElements.define("chart-panel", ChartPanel);
