// <form data-api="POST /api/v1/…">: sends what it says to the API, and shows the answer in its [data-answer].
// data-confirm asks first; data-then="reload" opens the page anew, otherwise the parts are fetched anew.

import { FetchError, send } from "./fetching.js";
import { bodyOf, pathOf } from "./form-values.js";

/** Wire every such form, those that come later included. `refresh()` fetches the page's parts anew. */
export function startApiForms(refresh) {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset?.api) return;
    event.preventDefault();
    if (form.ariaBusy === "true") return;
    if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) return;
    submit(form, event.submitter, refresh);
  });
}

async function submit(form, submitter, refresh) {
  form.ariaBusy = "true";
  if (submitter) submitter.disabled = true;
  say(form, form.dataset.wait ?? "Sending…", "");
  try {
    const [method, template] = form.dataset.api.split(" ");
    const fields = fieldsOf(form);
    const named = Object.fromEntries(fields.map(([name, field]) => [name, field.value]));
    const body = bodyOf(fields.filter(([, field]) => !field.isPath));
    const answer = await send(method, pathOf(template, named), body);
    say(form, `${form.dataset.done ?? "Done."}${reached(answer)}`, answer?.warning ? "warn" : "ok");
    form.dispatchEvent(new CustomEvent("api-answer", { bubbles: true, detail: answer }));
    if (form.dataset.then === "reload") location.reload();
    else refresh();
  } catch (error) {
    if (!(error instanceof FetchError) && error.name === "TypeError") throw error;
    say(form, error.message, "bad");
  } finally {
    form.ariaBusy = "false";
    if (submitter) submitter.disabled = false;
  }
}

/** Of a silence: what it reaches now, and what may not be meant. */
function reached(answer) {
  if (answer?.matches === undefined) return "";
  if (answer.warning) return ` Look again: ${answer.warning}.`;
  return ` It matches ${answer.matches} of the alerts that fire now.`;
}

function fieldsOf(form) {
  return [...form.elements]
    .filter((each) => each.name && !each.disabled && (each.type !== "radio" || each.checked))
    .map((each) => [each.name, { type: each.type, kind: each.dataset.kind, value: each.value, checked: each.checked, isPath: "path" in each.dataset }]);
}

function say(form, text, kind) {
  const place = form.querySelector("[data-answer]");
  if (!place) return;
  place.textContent = text;
  place.className = kind ? `answer state-${kind}` : "answer soft";
}
