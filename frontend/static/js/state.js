// The state of this page, and who wants to know when it changes.

import { changeState, readState } from "./url-state.js";

const listeners = new Set();

export function state() {
  return readState(location.search);
}

/** The state with what the page shows where nothing was chosen: its server, its range and, on some, its launch. */
export function shownState() {
  const { server, from, launch } = document.querySelector("[data-fragment]").dataset;
  return { server, from, launch, ...state() };
}

/** Change the URL and tell everyone; a range is a place to come back to, other choices replace the entry. */
export function setState(changes, { isPlace = false } = {}) {
  const address = location.pathname + changeState(location.search, changes) + location.hash;
  if (isPlace) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  updateLinks(changes);
  tell(Object.keys(changes));
}

/** Call back with the keys that changed. */
export function onStateChange(callback) {
  listeners.add(callback);
}

function tell(keys) {
  for (const listener of listeners) listener(keys);
}

// Links inside the site carry the choices along.
function updateLinks(changes) {
  for (const link of document.querySelectorAll(".nav a, .brand, .foot a")) {
    link.search = changeState(link.search, changes);
  }
}

window.addEventListener("popstate", () => tell(["from", "to", "server", "launch", "refresh", "theme"]));
