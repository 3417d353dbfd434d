// Wires one page: theme, pickers, live region, charts, refresh.

import "./chart-panel.js";
import { startAlertForms } from "./alert-forms.js";
import { startApiForms } from "./api-form.js";
import { Connection } from "./connection.js";
import { refreshParts } from "./live-region.js";
import { statusWords } from "./pacing.js";
import { startLoadMore } from "./load-more.js";
import { startPopovers } from "./popovers.js";
import { startRangePicker } from "./range-picker.js";
import { Refresher } from "./refresher.js";
import { startRuleEditor } from "./rule-editor.js";
import { onStateChange, setState, state } from "./state.js";
import { startTheme } from "./theme.js";
import { startUploadForms } from "./upload-form.js";
import { changeState } from "./url-state.js";

const root = document.querySelector("[data-fragment]");
const status = document.querySelector("[data-refresh-status]");
const refreshPicker = document.querySelector("[data-refresh-choice]");
const serverPicker = document.querySelector("[data-server-choice]");
const pace = () => refreshPicker?.value ?? "off";

const refresher = new Refresher(pace, ({ error }) => {
  connection.report(error);
  if (status) status.textContent = statusWords(Date.now(), connection.lastGood, pace());
});
const connection = new Connection(document.querySelector("#connection"), () => refresher.run());

let isFirst = true; // the parts of the first round came with the page
if (root) refresher.add(async () => {
  if (!isFirst) await refreshParts(root);
  isFirst = false;
});
refresher.add(async () => {
  const panels = [...document.querySelectorAll("chart-panel")];
  const results = await Promise.allSettled(panels.map((panel) => panel.refresh()));
  const reasons = results.map((result) => result.reason).filter(Boolean);
  if (reasons.length) throw reasons.find((reason) => reason.isServerDown) ?? reasons[0];
});

startTheme(() => refresher.run());
startRangePicker();
startPopovers();
startLoadMore();
startApiForms(() => refresher.run());
startAlertForms();
startRuleEditor();
startUploadForms(() => refresher.run());
serverPicker?.addEventListener("change", () => location.assign(changeState(location.search, { server: serverPicker.value, launch: "" }) || location.pathname));
refreshPicker?.addEventListener("change", () => setState({ refresh: refreshPicker.value }));
onStateChange((keys) => {
  if (keys.includes("refresh") && refreshPicker) refreshPicker.value = state().refresh ?? refreshPicker.dataset.default;
  if (keys.some((key) => key !== "theme")) refresher.run();
});

document.addEventListener("panel-failed", ({ detail }) => {
  if (detail?.isServerDown) connection.report(detail);
});

document.documentElement.dataset.ready = "yes";
refresher.run();
