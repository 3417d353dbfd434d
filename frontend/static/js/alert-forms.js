// What the forms of the pages about alerts do besides sending.

/** Wire "Silence" beside an alert (fills the form below) and the answer of a channel's test. */
export function startAlertForms() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-silence]");
    if (link) fill(link.dataset.silence, link.dataset.silenceServer);
  });
  document.addEventListener("api-answer", ({ target, detail }) => {
    if (!("testChannel" in target.dataset) || !detail) return;
    const place = target.querySelector("[data-answer]");
    const isGood = detail.outcome === "delivered";
    place.textContent = `${isGood ? "Delivered" : "Not delivered"} in ${detail.latency_ms} ms${detail.reason ? `: ${detail.reason}` : ""}`;
    place.className = `answer state-${isGood ? "ok" : "bad"}`;
  });
}

function fill(rule, server) {
  const field = document.querySelector("[data-silence-form] [name=matchers]");
  if (!field) return;
  field.value = [`rule="${rule}"`, server ? `server="${server}"` : ""].filter(Boolean).join("\n");
  field.form.elements.reason.focus({ preventScroll: true });
}
