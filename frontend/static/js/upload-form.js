// <form data-upload="/api/v1/…">: sends its file as it is, and shows the answer in its [data-answer].

import { FetchError, upload } from "./fetching.js";

/** Wire every such form, those that come later included. `refresh()` fetches the page's parts anew. */
export function startUploadForms(refresh) {
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset?.upload) return;
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    if (!file || form.ariaBusy === "true") return;
    form.ariaBusy = "true";
    say(form, "Sending…", "");
    try {
      const answer = await upload(form.dataset.upload, file);
      say(form, words(answer), "ok");
      if (answer.is_new) location.reload(); // with another reference there are other charts
      else refresh();
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      say(form, error.message, "bad");
    } finally {
      form.ariaBusy = "false";
    }
  });
}

/** What became of an upload, in words. */
export function words({ is_new: isNew, reference }) {
  const named = `${reference.name}, version ${reference.version}`;
  return isNew ? `Stored as ${named}.` : `It is there already as ${named}.`;
}

// A part that is fetched anew is replaced, so the answer goes to the form that stands there now.
function say(form, text, kind) {
  for (const each of document.querySelectorAll(`form[data-upload="${form.dataset.upload}"] [data-answer]`)) {
    each.textContent = text;
    each.className = kind ? `answer state-${kind}` : "answer soft";
  }
}
