// Adapts a figure of the API to its place on a page. Pure functions on plain objects.

import { parsePlotlyTime } from "./time-range.js";

const NARROW = 480; // there the legend takes two lines
const MARGIN = { l: 44, r: 12, t: 22 };
const CHARACTER_PIXELS = 7.2; // of a marker's label, mostly capitals and digits
const ENTRY_CHARACTER_PIXELS = 6.2; // of a legend's entry
const LABEL_GAP = 6;

/** Return the layout for a panel: its title and unit stand in the page (where they wrap), not in the drawing. */
export function panelLayout(layout, { width, height, names = [] }) {
  const { title, ...rest } = layout;
  const yaxis = { ...rest.yaxis };
  delete yaxis.title;
  const xaxis = { ...rest.xaxis, nticks: Math.max(3, Math.min(8, Math.floor(width / 80))) };
  const annotations = fitMarkers(rest.annotations ?? [], xaxis.range ?? [], width - MARGIN.l - MARGIN.r);
  const below = rest.showlegend === false ? 44 : Math.max(width < NARROW ? 92 : 66, 28 + dateHeight(xaxis) + titleHeight(xaxis) + 19 * legendRows(names, width));
  return { ...rest, annotations, xaxis, yaxis, height, margin: { ...MARGIN, ...(hasScale(rest) ? { r: 52 } : {}), b: below } };
}

/** Return annotations in which a marker shows as much of its label as ends before the next marker or the edge. */
export function fitMarkers(annotations, range, plotWidth) {
  const [low, high] = range.map(parsePlotlyTime);
  const times = annotations.filter((each) => each.name === "marker").map((each) => parsePlotlyTime(each.x));
  let index = 0;
  return annotations.map((each) => {
    if (each.name !== "marker") return each;
    const room = ((times[index + 1] ?? high) - times[index++]) / (high - low) * plotWidth;
    const text = shorterLabels(each.hovertext).find((label) => label.length * CHARACTER_PIXELS + LABEL_GAP <= room);
    return { ...each, text: text ?? "▾", xanchor: text ? "left" : "center" };
  });
}

/** "K=5 D=6 · 0.5.8" can be cut to "K=5 D=6" and to "K=5". */
function shorterLabels(label) {
  const [settings] = label.split(" · ");
  return [label, settings, ...(settings.match(/^K=\d+/) ?? [])];
}

/** Rows that plotly needs for a legend: columns as wide as its longest entry. */
export function legendRows(names, width) {
  const longest = Math.max(0, ...names.map((name) => name.length));
  const columns = Math.max(1, Math.floor((width - MARGIN.l - MARGIN.r) / (46 + ENTRY_CHARACTER_PIXELS * longest)));
  return Math.ceil(names.length / columns);
}

function titleHeight(axis) {
  return axis.title?.text ? 18 : 0;
}

/** Below the first tick of a time axis stands the day, in a line of its own. */
function dateHeight(axis) {
  return axis.type === "date" ? 15 : 0;
}

/** True for a heat map: beside it stands the scale of its colours. */
function hasScale(layout) {
  return Boolean(layout.meta?.y);
}

/** What a trace measures: along y, the colour of a heat map, or along x where y names things. */
function measured(trace) {
  const found = values(trace.z ?? trace.y);
  const areNames = found.length > 0 && found.every((value) => typeof value === "string");
  return areNames ? values(trace.x) : found;
}

/** True when no trace has a finite value: nothing was measured in this range. */
export function isEmptyFigure(data) {
  return !data.some((trace) => measured(trace).some(Number.isFinite));
}

/** Return the numbers of an array or of a typed array in base64 (little-endian float64). */
export function values(y) {
  if (Array.isArray(y)) return y;
  if (!y || typeof y.bdata !== "string") return [];
  const bytes = Uint8Array.from(atob(y.bdata), (character) => character.charCodeAt(0));
  return Array.from(new Float64Array(bytes.buffer));
}

/** One sentence for those who cannot see the chart: the newest finite value of each line. */
export function describeFigure(title, data) {
  const parts = data.map((trace) => {
    const last = measured(trace).filter(Number.isFinite).at(-1);
    return last === undefined ? `${trace.name}: no data` : `${trace.name}: newest ${Number(last.toPrecision(4))}`;
  });
  return `${title}. ${parts.join("; ")}.`;
}
