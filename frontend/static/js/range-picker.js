// The time-range buttons and the two fields of a custom range; both are plain forms that work without this file.

import { onStateChange, setState, state } from "./state.js";

export function startRangePicker() {
  const form = document.querySelector("[data-range-choice]");
  const custom = document.querySelector("[data-custom-form]");
  if (!form || !custom) return;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setState({ from: event.submitter.value, to: "" }, { isPlace: true });
  });
  form.querySelector("[data-custom-range]").addEventListener("click", () => {
    custom.hidden = !custom.hidden;
    show(form, custom);
    if (!custom.hidden) custom.elements.from.focus();
  });
  custom.addEventListener("submit", (event) => {
    event.preventDefault();
    setState({ from: custom.elements.from.value.trim(), to: custom.elements.to.value.trim() }, { isPlace: true });
  });
  onStateChange((keys) => {
    if (!keys.includes("from") && !keys.includes("to")) return;
    const { from = "", to = "now" } = state();
    custom.elements.from.value = from || custom.elements.from.defaultValue;
    custom.elements.to.value = to;
    show(form, custom);
  });
}

function show(form, custom) {
  const { from = form.dataset.default, to = "now" } = state();
  let found = false;
  for (const button of form.querySelectorAll("button[name=from]")) {
    const isOn = to === "now" && button.value === from;
    button.setAttribute("aria-pressed", String(isOn));
    found ||= isOn;
  }
  const customButton = form.querySelector("[data-custom-range]");
  if (!found) custom.hidden = false;
  customButton.setAttribute("aria-pressed", String(!found));
  customButton.setAttribute("aria-expanded", String(!custom.hidden));
}
