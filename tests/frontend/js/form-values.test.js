import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, fieldValue, pathOf } from "../../../frontend/static/js/form-values.js";

const text = (value, kind) => ({ type: "text", kind, value });

test("an empty field is left out, a checkbox never", () => {
  assert.deepEqual(bodyOf([["a", text("  ")], ["b", { type: "checkbox", value: "on", checked: false }]]), { b: false });
});

test("kinds of values", () => {
  assert.equal(fieldValue(text(" 2.5 ", "number")), 2.5);
  assert.deepEqual(fieldValue(text("a\n\n b ", "lines")), ["a", "b"]);
  assert.deepEqual(fieldValue(text('{"a": 1}', "json")), { a: 1 });
  assert.equal(fieldValue(text(" a: 1\n", "verbatim")), " a: 1\n");
});

test("dots make objects", () => {
  assert.deepEqual(bodyOf([["config.url", text("x")], ["config.n", text("0", "number")]]), { config: { url: "x", n: 0 } });
});

test("a wrong value names its field", () => {
  assert.throws(() => bodyOf([["n", text("many", "number")]]), /^Error: n: “many” is no number$/);
  assert.throws(() => bodyOf([["j", text("{", "json")]]), /^Error: j: it is no JSON/);
});

test("fields in a path cannot leave their part of it", () => {
  assert.equal(pathOf("/api/v1/channels/{name}/test", { name: "../x?y" }), "/api/v1/channels/..%2Fx%3Fy/test");
});

test("conditions on labels, one a line", () => {
  assert.deepEqual(fieldValue(text('rule="dead-draft",\n server =~ gpu.*\n', "matchers")), [
    { label: "rule", operator: "=", value: "dead-draft" },
    { label: "server", operator: "=~", value: "gpu.*" },
  ]);
  assert.throws(() => fieldValue(text("dead draft", "matchers")), /is no condition/);
});
