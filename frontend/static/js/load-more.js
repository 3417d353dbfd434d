// "Load more" below a table: fetches further rows and appends them. Without this file the link leads to them.

import { get } from "./fetching.js";

/** Wire every such link; the list then stands still, since a refresh would take the further rows away. */
export function startLoadMore() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-more]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    load(link);
  });
}

async function load(link) {
  const place = link.closest("[data-live], [data-stands-still]");
  const status = link.parentElement.querySelector("[data-more-status]");
  if (!place || link.ariaBusy === "true") return;
  place.removeAttribute("data-live");
  place.dataset.standsStill = "yes";
  link.ariaBusy = "true";
  status.textContent = "Loading…";
  try {
    const response = await get(`/fragments${new URL(link.href).pathname}/rows${new URL(link.href).search}`, new AbortController().signal);
    append(place, link, status, new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch (error) {
    status.textContent = `Not loaded: ${error.message}. Press again to retry.`;
  } finally {
    link.ariaBusy = "false";
  }
}

function append(place, link, status, incoming) {
  const problem = incoming.querySelector("[data-more-problem]");
  if (problem) throw new Error(problem.textContent);
  const rows = place.querySelector("[data-more-rows]");
  const fresh = [...incoming.querySelectorAll("[data-more-rows] > tr")];
  rows.append(...fresh);
  status.textContent = `${rows.children.length} requests shown; the list stands still until the page is loaded anew.`;
  const next = incoming.querySelector("a[data-more]");
  if (next) link.href = next.getAttribute("href");
  else link.remove();
  fresh[0]?.querySelector("a")?.focus({ preventScroll: true });
}
