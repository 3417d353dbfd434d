// Moving about in time. Pure functions on epoch milliseconds.

const SMALLEST_MS = 10_000;

/** Return [from, to] after a key on a chart: arrows move by a quarter, plus and minus zoom; null = not our key. */
export function moveRange(from, to, key) {
  const span = to - from;
  switch (key) {
    case "ArrowLeft": return [from - span / 4, to - span / 4];
    case "ArrowRight": return [from + span / 4, to + span / 4];
    case "+": case "=": return zoom(from, to, 0.5);
    case "-": case "_": return zoom(from, to, 2);
    default: return null;
  }
}

function zoom(from, to, factor) {
  const middle = (from + to) / 2;
  const half = Math.max((to - from) * factor, SMALLEST_MS) / 2;
  return [middle - half, middle + half];
}

/** Return the state of the URL for a range: whole seconds, ISO 8601, never before 1970 and never empty. */
export function rangeState(from, to) {
  const start = Math.max(Math.floor(from / 1000), 0);
  const end = Math.max(Math.ceil(to / 1000), start + 1);
  return { from: isoSeconds(start), to: isoSeconds(end) };
}

function isoSeconds(seconds) {
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
}

/** Return [from, to] of plotly's relayout event, or null when it was about something else. Its times are UTC. */
export function zoomedRange(change) {
  const pair = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const times = pair.map(parsePlotlyTime);
  return times.every(Number.isFinite) && times[0] < times[1] ? times : null;
}

/** Plotly writes "2026-03-01 12:00:05.1234" in UTC, without saying so; the API writes ISO 8601 with Z. */
export function parsePlotlyTime(value) {
  if (typeof value !== "string") return NaN;
  const [day, time = "00:00"] = value.replace(/Z$/, "").split(/[ T]/);
  return Date.parse(`${day}T${time.replace(/(\.\d{3})\d+/, "$1")}Z`);
}
