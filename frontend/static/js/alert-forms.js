// What the forms of the pages about alerts do besides sending.

import { FetchError, send } from "./fetching.js";
import { fieldValue } from "./form-values.js";

/** Show what came of a channel's test, and what a silence would mute. */
export function startAlertForms() {
  document.addEventListener("click", ({ target }) => {
    const button = target.closest?.("[data-silence-preview]");
    if (button) preview(button);
  });
  document.addEventListener("api-answer", ({ target, detail }) => {
    if (!("testChannel" in target.dataset) || !detail) return;
    const place = target.querySelector("[data-answer]");
    const isGood = detail.outcome === "delivered";
    place.textContent = `${isGood ? "Delivered" : "Not delivered"} in ${detail.latency_ms} ms${detail.reason ? `: ${detail.reason}` : ""}`;
    place.className = `answer state-${isGood ? "ok" : "bad"}`;
  });
}

async function preview(button) {
  const form = button.closest("form");
  const place = form.querySelector("[data-answer]");
  const list = form.querySelector("[data-preview]");
  button.disabled = true;
  try {
    const { value, type, dataset } = form.elements.matchers;
    const matchers = fieldValue({ type, kind: dataset.kind, value }) ?? [];
    const answer = await send("POST", "/api/v1/alerts/silences/preview", { matchers });
    place.textContent = previewWords(answer);
    place.className = `answer state-${answer.warning ? "warn" : "ok"}`;
    list.replaceChildren(...answer.alerts.map(previewItem));
    list.hidden = !answer.alerts.length;
  } catch (error) {
    if (!(error instanceof FetchError) && error.name === "TypeError") throw error;
    list.hidden = true;
    place.textContent = error.message;
    place.className = "answer state-bad";
  } finally {
    button.disabled = false;
  }
}

/** Return what a silence would do, in one or two sentences. */
export function previewWords({ matches, known, warning }) {
  const series = `${known} more ${known === 1 ? "series is" : "series are"} known that it matches`;
  const said = `It would mute ${matches} of the alerts that fire now${known ? `; ${series}` : ""}.`;
  return warning ? `${said} Look again: ${warning}.` : said;
}

function previewItem({ title, state, labels }) {
  const item = document.createElement("li");
  const said = Object.entries(labels).filter(([name]) => !["rule", "severity", "category"].includes(name));
  item.textContent = [title, state, ...said.map(([name, value]) => `${name}=${value}`)].join(" · ").slice(0, 300);
  return item;
}
