// Swaps the parts of a page that the server renders, without losing what the reader has opened, focused, written
// into a form or been answered by one.

import { get } from "./fetching.js";
import { state } from "./state.js";

const FOCUSABLE = "a, button, summary, select, input";
let request = null;

/** Fetch all live parts for the present state and put each in place of the old one. */
export async function refreshParts(root) {
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  const response = await get(`${root.dataset.fragment}?${new URLSearchParams(state())}`, signal);
  const incoming = new DOMParser().parseFromString(await response.text(), "text/html");
  if (signal.aborted) return;
  for (const part of root.querySelectorAll("[data-live]")) {
    const fresh = incoming.querySelector(`[data-live="${part.dataset.live}"]`);
    if (fresh && fresh.innerHTML !== part.dataset.received) swap(part, fresh);
  }
  addCharts(root.querySelector("[data-charts]"), incoming.querySelector("[data-charts]"));
}

/** Add the charts whose data came since the page was opened, each in its place; those drawn stay as they are. */
function addCharts(present, fresh) {
  const shown = new Map([...(present?.children ?? [])].map((panel) => [panel.getAttribute("name"), panel]));
  let before = null;
  for (const panel of present && fresh ? [...fresh.children] : []) {
    const same = shown.get(panel.getAttribute("name"));
    if (!same) before ? before.after(panel) : present.prepend(panel);
    before = same ?? panel;
  }
}

function swap(part, fresh) {
  const html = fresh.innerHTML;
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  const scrolled = [...part.querySelectorAll(".launches, .table-scroll")].map((each) => [each.scrollTop, each.scrollLeft]);
  const focused = [...part.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  keepForms(part, fresh);
  part.replaceChildren(...fresh.childNodes);
  part.dataset.received = html;
  const details = [...part.querySelectorAll("details")];
  if (details.length === open.length) details.forEach((each, index) => { each.open = open[index]; });
  [...part.querySelectorAll(".launches, .table-scroll")].forEach((each, index) => {
    if (scrolled[index]) each.scrollTo(scrolled[index][1], scrolled[index][0]);
  });
  if (focused >= 0) part.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
}

/** Put the present forms in place of those that came the same: one that is being sent must live to hear its answer. */
function keepForms(part, fresh) {
  const present = [...part.querySelectorAll("form[data-api]")];
  for (const form of fresh.querySelectorAll("form[data-api]")) {
    const same = present.find((each) => asItCame(each, each) === asItCame(form, each));
    if (same) form.replaceWith(same);
  }
}

/** Return a form's markup without its answer and, while `present` is being sent, without what that changed. */
function asItCame(form, present) {
  const copy = form.cloneNode(true);
  const isSent = present.ariaBusy === "true";
  copy.removeAttribute("aria-busy");
  for (const button of copy.querySelectorAll("button")) button.disabled = !isSent && button.disabled;
  for (const answer of copy.querySelectorAll("[data-answer]")) answer.remove();
  return copy.outerHTML;
}
