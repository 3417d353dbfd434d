// When to refresh next, and how to say what became of it. Pure functions.

const LONGEST_SECONDS = 120;

/** Seconds until the next refresh: the chosen pace, doubled with every failure in a row; null = never. */
export function nextDelaySeconds(choice, failures) {
  const pace = Number(choice);
  if (!Number.isFinite(pace) || pace <= 0) return null;
  return Math.max(pace, Math.min(pace * 2 ** failures, LONGEST_SECONDS));
}

/** Points worth asking for: one per two pixels, in steps of 50 so that resizing hits the same answers. */
export function pointsForWidth(width) {
  const points = Math.ceil(Math.max(width, 0) / 2 / 50) * 50;
  return Math.min(Math.max(points, 100), 1000);
}

/** Words for the banner: the session ended, the server fails, or nobody answers (status 0). */
export function troubleWords(error, since) {
  if (error.status === 401) return "The session has ended: reload the page to log in again. Showing what was last received.";
  const clock = new Date(since).toISOString().slice(11, 19);
  const what = error.status ? "Server failing" : "Server not answering";
  return `${what} since ${clock} UTC (${error.message}); showing what was last received.`;
}

/** Words for the status beside the refresh picker. */
export function statusWords(now, lastGood, choice) {
  if (lastGood === null) return "loading…";
  const clock = new Date(lastGood).toISOString().slice(11, 19);
  return choice === "off" ? `read ${clock}, refresh is off` : `read ${clock}`;
}
