// What the forms of the pages about alerts do besides sending.

/** Show what came of a channel's test. */
export function startAlertForms() {
  document.addEventListener("api-answer", ({ target, detail }) => {
    if (!("testChannel" in target.dataset) || !detail) return;
    const place = target.querySelector("[data-answer]");
    const isGood = detail.outcome === "delivered";
    place.textContent = `${isGood ? "Delivered" : "Not delivered"} in ${detail.latency_ms} ms${detail.reason ? `: ${detail.reason}` : ""}`;
    place.className = `answer state-${isGood ? "ok" : "bad"}`;
  });
}
