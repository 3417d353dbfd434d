// Adapts a figure of the API to its place on a page. Pure functions on plain objects.

import { parsePlotlyTime } from "./time-range.js";

const NARROW = 480; // there the legend takes two lines
const MARGIN = { l: 44, r: 12, t: 22 };
const CHARACTER_PIXELS = 7.2; // of a marker's label, mostly capitals and digits
const LABEL_GAP = 6;

/** Return the layout for a panel: its title and unit stand in the page (where they wrap), not in the drawing. */
export function panelLayout(layout, { width, height }) {
  const { title, ...rest } = layout;
  const yaxis = { ...rest.yaxis };
  delete yaxis.title;
  const xaxis = { ...rest.xaxis, nticks: Math.max(3, Math.min(8, Math.floor(width / 80))) };
  const annotations = fitMarkers(rest.annotations ?? [], xaxis.range ?? [], width - MARGIN.l - MARGIN.r);
  const below = rest.showlegend === false ? 44 : width < NARROW ? 92 : 66;
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

/** True for a heat map: beside it stands the scale of its colours. */
function hasScale(layout) {
  return Boolean(layout.meta?.y);
}

/** What a trace measures: along y, or the colour of a heat map. */
function measured(trace) {
  return values(trace.z ?? trace.y);
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
