// Fetch with one kind of error, that can say whether the server is there at all.

const TIMEOUT_MS = 15_000;
const SEND_TIMEOUT_MS = 60_000;

export class FetchError extends Error {
  /** status 0 = no answer. */
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  /** True when the trouble is the server's or the connection's, not the question's. */
  get isServerDown() {
    return this.status === 0 || this.status >= 500 || this.status === 401;
  }
}

/** Return a good response; throw FetchError otherwise. An abort by `signal` passes through as AbortError. */
export async function get(url, signal) {
  return answered(url, {}, { signal, patience: AbortSignal.timeout(TIMEOUT_MS), late: "no answer within 15 s" });
}

/** Send JSON and return the JSON of the answer (null without one); throw FetchError otherwise. */
export async function send(method, url, body) {
  const patience = AbortSignal.timeout(SEND_TIMEOUT_MS);
  const late = "no answer within 60 s; look whether it was done before you try again";
  const response = await answered(url, method === "DELETE" ? { method } : json(method, body), { patience, late });
  return response.status === 204 ? null : response.json().catch(() => null);
}

/** Send a file as it is and return the JSON of the answer; throw FetchError otherwise. */
export async function upload(url, file) {
  const options = { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } };
  const patience = AbortSignal.timeout(SEND_TIMEOUT_MS);
  return (await answered(url, options, { patience, late: "no answer within 60 s" })).json();
}

/** Send JSON and return the answer's HTML as a document; throw FetchError otherwise. An abort passes through. */
export async function fragment(url, body, signal) {
  const response = await answered(url, json("POST", body), { signal });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

function json(method, body) {
  return { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } };
}

/** Fetch: `signal` is the caller's, whose abort passes through; once `patience` is over, that is told as `late`. */
async function answered(url, options, { signal, patience, late }) {
  let response;
  try {
    const ends = AbortSignal.any([signal, patience].filter(Boolean));
    response = await fetch(url, { ...options, redirect: "manual", signal: ends });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new FetchError(patience?.aborted ? late : "no connection", 0);
  }
  if (response.ok) return response;
  if (response.type === "opaqueredirect") throw new FetchError("the session has ended", 401);
  throw new FetchError(await reason(response), response.status);
}

async function reason(response) {
  try {
    const problem = await response.json();
    return problem.detail || problem.title || `HTTP ${response.status}`;
  } catch {
    return `HTTP ${response.status}`;
  }
}
