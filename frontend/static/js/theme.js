// System, light or dark; the choice lives in the URL.

import { onStateChange, setState, state } from "./state.js";

const systemDark = matchMedia("(prefers-color-scheme: dark)");

/** The theme in force: "light" or "dark". */
export function theme() {
  return state().theme ?? (systemDark.matches ? "dark" : "light");
}

/** Wire the picker, and call back whenever the theme in force changes. */
export function startTheme(onChange) {
  const picker = document.querySelector("[data-theme-choice]");
  picker?.addEventListener("change", () => setState({ theme: picker.value }));
  systemDark.addEventListener("change", onChange);
  onStateChange((keys) => {
    if (!keys.includes("theme")) return;
    const chosen = state().theme;
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    if (picker) picker.value = chosen ?? "";
    onChange();
  });
}
