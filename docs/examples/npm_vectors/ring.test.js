/** The ring, judged by kvconform's package: `npm test`. `BUG=1 npm test` finds a planted bug. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { check } from "kvconform-vectors";
import { Ring } from "./ring.js";

test("the ring does what every trace says", async () => {
  const { judged, all, wrong } = await check((window) => new Ring(window));
  console.log(`${judged} traces of ${all} judged, ${wrong.length} went otherwise`);
  assert.ok(wrong.length === 0, wrong.join("\n"));
});
