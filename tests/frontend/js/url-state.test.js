import assert from "node:assert/strict";
import test from "node:test";
import { changeState, figureUrl, readState } from "../../../frontend/static/js/url-state.js";

test("reads only the keys of the state, and no empty ones", () => {
  assert.deepEqual(readState("?server=gpu1%3A30000&from=now-1h&other=1&to="), { server: "gpu1:30000", from: "now-1h" });
});

test("a change round-trips through the query string, hostile text included", () => {
  const server = `<img src=x onerror="1">&#?%=+ \u202eabc`;
  const search = changeState("?theme=dark", { server });
  assert.deepEqual(readState(search), { server, theme: "dark" });
});

test("an empty value removes its key; the last one leaves no question mark", () => {
  assert.equal(changeState("?launch=3", { launch: "" }), "");
  assert.equal(changeState("?launch=3&server=a", { launch: "" }), "?server=a");
});

test("keys that are not ours stay", () => {
  assert.equal(changeState("?debug=1", { from: "now-6h" }), "?debug=1&from=now-6h");
});

test("a figure is asked for with the references that were chosen", () => {
  const url = figureUrl("drift-bands", { server: "x", reference: "3", boundaries: "4" }, {});
  assert.equal(url, "/api/v1/figures/drift-bands?server=x&reference=3&boundaries=4");
});

test("a figure is asked for with the range and server, without theme and refresh of the page", () => {
  const url = figureUrl("a/b", { server: "x", from: "now-1h", refresh: "5", theme: "dark" }, { theme: "light", points: 300 });
  assert.equal(url, "/api/v1/figures/a%2Fb?server=x&from=now-1h&theme=light&points=300");
});
