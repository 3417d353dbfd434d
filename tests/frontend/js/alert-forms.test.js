import assert from "node:assert/strict";
import test from "node:test";

import { previewWords } from "../../../frontend/static/js/alert-forms.js";

test("what a silence would mute is said in numbers, and what may not be meant", () => {
  assert.equal(previewWords({ matches: 2, known: 0, warning: "" }), "It would mute 2 of the alerts that fire now.");
  assert.equal(
    previewWords({ matches: 0, known: 1, warning: "" }),
    "It would mute 0 of the alerts that fire now; 1 more series is known that it matches.",
  );
  assert.match(previewWords({ matches: 3, known: 2, warning: "it matches everything" }), /2 more series are known.*Look again: it matches everything\.$/);
});
