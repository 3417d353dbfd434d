import assert from "node:assert/strict";
import test from "node:test";
import { nextDelaySeconds, pointsForWidth, statusWords, troubleWords } from "../../../frontend/static/js/pacing.js";

test("refreshes at the chosen pace while all is well", () => {
  assert.equal(nextDelaySeconds("5", 0), 5);
});

test("backs off with every failure in a row, up to a limit", () => {
  assert.deepEqual([1, 2, 3, 9].map((failures) => nextDelaySeconds("10", failures)), [20, 40, 80, 120]);
});

test("backing off never refreshes faster than was chosen", () => {
  assert.equal(nextDelaySeconds("300", 4), 300);
});

test("off and nonsense mean never", () => {
  for (const choice of ["off", "", undefined, "-5", "0", "Infinity"]) assert.equal(nextDelaySeconds(choice, 0), null);
});

test("asks for about a point per two pixels, in steps, within limits", () => {
  assert.deepEqual([0, 330, 600, 601, 5000].map(pointsForWidth), [100, 200, 300, 350, 1000]);
});

test("says when it was read, in UTC", () => {
  assert.equal(statusWords(0, Date.UTC(2026, 2, 1, 12, 3, 4), "10"), "read 12:03:04");
  assert.match(statusWords(0, Date.UTC(2026, 2, 1, 12, 3, 4), "off"), /refresh is off/);
  assert.equal(statusWords(0, null, "10"), "loading…");
});

test("the banner tells a silent server from a failing one and from an ended session", () => {
  const since = Date.UTC(2026, 2, 1, 12, 3, 4);
  const words = (status, message) => troubleWords({ status, message }, since);
  assert.equal(words(0, "no connection"), "Server not answering since 12:03:04 UTC (no connection); showing what was last received.");
  assert.match(words(503, "the database did not answer"), /^Server failing since 12:03:04 UTC \(the database/);
  assert.match(words(401, ""), /log in again/);
});
