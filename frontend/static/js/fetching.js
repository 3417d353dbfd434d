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
  const patience = AbortSignal.timeout(TIMEOUT_MS);
  let response;
  try {
    response = await fetch(url, { signal: AbortSignal.any([signal, patience]), redirect: "manual" });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new FetchError(patience.aborted ? "no answer within 15 s" : "no connection", 0);
  }
  if (response.ok) return response;
  if (response.type === "opaqueredirect") throw new FetchError("the session has ended", 401);
  throw new FetchError(await reason(response), response.status);
}

/** Send JSON and return the JSON of the answer (null without one); throw FetchError otherwise. */
export async function send(method, url, body) {
  const options = { method, redirect: "manual", signal: AbortSignal.timeout(SEND_TIMEOUT_MS) };
  if (method !== "DELETE") Object.assign(options, { body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  let response;
  try {
    response = await fetch(url, options);
  } catch {
    throw new FetchError(options.signal.aborted ? "no answer within 60 s; look whether it was done before you try again" : "no connection", 0);
  }
  if (!response.ok) throw new FetchError(await reason(response), response.status);
  return response.status === 204 ? null : response.json().catch(() => null);
}

/** Send a file as it is and return the JSON of the answer; throw FetchError otherwise. */
export async function upload(url, file) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST", body: file, headers: { "content-type": "application/octet-stream" },
      redirect: "manual", signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
    });
  } catch {
    throw new FetchError("no connection, or no answer within 60 s", 0);
  }
  if (!response.ok) throw new FetchError(await reason(response), response.status);
  return response.json();
}

/** Send JSON and return the answer's HTML as a document; throw FetchError otherwise. An abort passes through. */
export async function fragment(url, body, signal) {
  let response;
  try {
    response = await fetch(url, { method: "POST", redirect: "manual", signal, body: JSON.stringify(body), headers: { "content-type": "application/json" } });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new FetchError("no connection", 0);
  }
  if (!response.ok) throw new FetchError(await reason(response), response.status);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

async function reason(response) {
  try {
    const problem = await response.json();
    return problem.detail || problem.title || `HTTP ${response.status}`;
  } catch {
    return `HTTP ${response.status}`;
  }
}
