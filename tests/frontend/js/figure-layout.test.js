import assert from "node:assert/strict";
import test from "node:test";
import { describeFigure, fitMarkers, isEmptyFigure, legendRows, panelLayout, values } from "../../../frontend/static/js/figure-layout.js";

const packed = (numbers) => ({ dtype: "f8", bdata: Buffer.from(new Float64Array(numbers).buffer).toString("base64") });

test("a panel keeps neither the title nor the axis title, which stand in the page", () => {
  const layout = { title: { text: "x" }, yaxis: { title: { text: "y" }, range: [0, 1] }, xaxis: {} };
  const shown = panelLayout(layout, { width: 600, height: 260 });
  assert.equal("title" in shown, false);
  assert.deepEqual(shown.yaxis, { range: [0, 1] });
  assert.equal(shown.height, 260);
  assert.ok(panelLayout(layout, { width: 360, height: 260 }).margin.b > shown.margin.b, "room for a longer legend");
  assert.deepEqual([300, 600, 2000].map((width) => panelLayout(layout, { width, height: 260 }).xaxis.nticks), [3, 7, 8]);
  assert.equal(layout.yaxis.title.text, "y", "the figure itself is not changed");
});

test("typed arrays are read as they were written", () => {
  assert.deepEqual(values(packed([1.5, NaN, -2])), [1.5, NaN, -2]);
  assert.deepEqual(values([1, null]), [1, null]);
  assert.deepEqual(values(undefined), []);
});

test("a figure of gaps only is empty; a zero is a value", () => {
  assert.equal(isEmptyFigure([{ y: packed([NaN, NaN]) }]), true);
  assert.equal(isEmptyFigure([]), true);
  assert.equal(isEmptyFigure([{ y: packed([NaN]) }, { y: packed([0]) }]), false);
});

test("a chart whose y names things measures along x", () => {
  const pairs = { name: "same output", x: packed([-3.5, 0.25]), y: ["code-lru", "json-order"] };
  assert.equal(isEmptyFigure([pairs]), false);
  assert.equal(isEmptyFigure([{ ...pairs, x: packed([NaN, NaN]) }]), true);
  assert.equal(describeFigure("Pairs", [pairs]), "Pairs. same output: newest 0.25.");
});

test("describes each line by its newest value, and says when there is none", () => {
  const words = describeFigure("Load", [{ name: "running", y: packed([1, 3.14159, NaN]) }, { name: "queued", y: packed([NaN]) }]);
  assert.equal(words, "Load. running: newest 3.142; queued: no data.");
});

test("a marker shows as much of its label as there is room for before the next one and the edge", () => {
  const marker = (x) => ({ name: "marker", x, hovertext: "K=5 D=6 · 0.5.8", text: "?" });
  const range = ["2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"];
  const notes = [marker("2026-03-01T12:00:00Z"), { text: "demo" }, marker("2026-03-01T12:02:00Z"), marker("2026-03-01T12:58:00Z")];
  const shown = (width) => fitMarkers(notes, range, width).map((each) => each.text);
  assert.deepEqual(shown(800), ["▾", "demo", "K=5 D=6 · 0.5.8", "▾"]);
  assert.deepEqual(shown(900), ["K=5", "demo", "K=5 D=6 · 0.5.8", "K=5"]);
  assert.deepEqual(shown(1800), ["K=5 D=6", "demo", "K=5 D=6 · 0.5.8", "K=5 D=6"]);
  assert.deepEqual(shown(4000), Array(4).fill("K=5 D=6 · 0.5.8").with(1, "demo"));
  assert.deepEqual(fitMarkers(notes, range, 800).map((each) => each.xanchor), ["center", undefined, "left", "center"]);
});

test("a legend takes as many rows as its longest entry allows, and the plot leaves them room", () => {
  const names = Array(8).fill("conditional αₖ, launch 14 (K = 1)");
  assert.deepEqual([legendRows([], 600), legendRows(["a"], 600), legendRows(names, 600), legendRows(names, 300)], [0, 1, 4, 8]);
  const layout = { xaxis: { title: { text: "x" } }, yaxis: {} };
  const shown = panelLayout(layout, { width: 600, height: 320, names });
  assert.equal(shown.margin.b, 28 + 18 + 4 * 19);
  const dated = panelLayout({ xaxis: { type: "date" }, yaxis: {} }, { width: 600, height: 320, names });
  assert.equal(dated.margin.b, 28 + 15 + 4 * 19, "the day stands below the first tick");
});

test("a heat map is measured by its colours and leaves room for their scale", () => {
  const data = [{ name: "few", y: [1], z: packed([NaN]) }, { name: "survival", y: [1], z: packed([0.5, NaN]) }];
  assert.equal(isEmptyFigure(data), false);
  assert.equal(isEmptyFigure(data.slice(0, 1)), true);
  assert.match(describeFigure("Heat", data), /few: no data; survival: newest 0.5/);
  const layout = { meta: { y: "position" }, showlegend: false, xaxis: {}, yaxis: {} };
  const shown = panelLayout(layout, { width: 600, height: 260 });
  assert.deepEqual([shown.margin.r, shown.margin.b], [52, 44]);
});
