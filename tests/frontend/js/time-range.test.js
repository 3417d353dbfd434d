import assert from "node:assert/strict";
import test from "node:test";
import { moveRange, parsePlotlyTime, rangeState, zoomedRange } from "../../../frontend/static/js/time-range.js";

test("arrows move by a quarter of the range", () => {
  assert.deepEqual(moveRange(1000, 5000, "ArrowLeft"), [0, 4000]);
  assert.deepEqual(moveRange(1000, 5000, "ArrowRight"), [2000, 6000]);
});

test("plus and minus zoom around the middle and undo each other", () => {
  const [from, to] = moveRange(0, 400_000, "+");
  assert.deepEqual([from, to], [100_000, 300_000]);
  assert.deepEqual(moveRange(from, to, "-"), [0, 400_000]);
});

test("zooming in stops at ten seconds", () => {
  const [from, to] = moveRange(0, 12_000, "+");
  assert.equal(to - from, 10_000);
});

test("other keys are left to the page", () => {
  assert.equal(moveRange(0, 1, "Tab"), null);
});

test("the state of a range is ISO 8601 in whole seconds and never empty", () => {
  assert.deepEqual(rangeState(1_772_366_400_100, 1_772_366_400_200), { from: "2026-03-01T12:00:00Z", to: "2026-03-01T12:00:01Z" });
  assert.deepEqual(rangeState(-5000, -4000), { from: "1970-01-01T00:00:00Z", to: "1970-01-01T00:00:01Z" });
});

test("plotly's times are UTC whatever the clock of the browser says", () => {
  assert.equal(parsePlotlyTime("2026-03-01 12:00:05.1234"), Date.UTC(2026, 2, 1, 12, 0, 5, 123));
  assert.equal(parsePlotlyTime("2026-03-01 12:00"), Date.UTC(2026, 2, 1, 12));
  assert.equal(parsePlotlyTime("2026-03-01"), Date.UTC(2026, 2, 1));
  assert.equal(parsePlotlyTime("2026-03-01T12:00:05.000Z"), Date.UTC(2026, 2, 1, 12, 0, 5));
  assert.ok(Number.isNaN(parsePlotlyTime(null)));
});

test("only a zoom in time changes the range", () => {
  const change = { "xaxis.range[0]": "2026-03-01 12:00", "xaxis.range[1]": "2026-03-01 13:00" };
  assert.deepEqual(zoomedRange(change), [Date.UTC(2026, 2, 1, 12), Date.UTC(2026, 2, 1, 13)]);
  assert.equal(zoomedRange({ autosize: true }), null);
});
