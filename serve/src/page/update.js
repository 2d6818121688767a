// SPDX-License-Identifier: MIT OR Apache-2.0
// An update of the chosen host: the order, its progress and its end.
"use strict";

const STEPS = ["waiting", "sending", "switching", "done", "refused", "failed"], FIRST_END = STEPS.indexOf("done");
// The update that is shown, as it was last reported.
let shownUpdate = null;

async function update(event) {
  event.preventDefault();
  const file = at("image").files[0], isRehearsal = at("rehearse").checked;
  const path = of(`update?by=${file ? "image" : "bundle"}&dry_run=${isRehearsal}`);
  if (!isRehearsal && !await confirmed(`Replace the hypervisor of ${chosen} while its guests run?`)) return;
  at("step").textContent = "sending to the service …";
  try {
    showUpdate(await call(path, { method: "POST", body: file }));
  } catch (error) {
    at("step").textContent = error.message;
  }
}

const isOver = update => STEPS.indexOf(update.step) >= FIRST_END;

// The answer to an order, the list and the stream have a connection each, so their states come in any order. Numbers
// may begin again with the service; times do not.
function isOlder(update) {
  if (shownUpdate?.host !== update.host) return false;
  const place = ({ asked_ms, step, sent_bytes }) => [asked_ms, STEPS.indexOf(step), sent_bytes];
  const now = place(update), shown = place(shownUpdate);
  const other = now.findIndex((value, index) => value !== shown[index]);
  return other !== -1 && now[other] < shown[other];
}

function showUpdate(update) {
  if (update.host !== chosen || isOlder(update)) return;
  shownUpdate = update;
  const { step, sent_bytes, total_bytes } = update;
  at("progress").value = isOver(update) ? Number(step === "done") : sent_bytes / Math.max(total_bytes, 1) * .9;
  let text = `${update.is_dry_run ? "rehearsal" : "update"} ${update.id}: ${step}`;
  if (update.message) text += `: ${update.message}`;
  if (update.report && !update.is_dry_run) text += `; guests stood still for ${time(update.report.gap_ns / 1e3)}`;
  at("step").textContent = text;
  at("step").className = isOver(update) && step !== "done" ? "bad" : "";
  if (step === "done") readTimeline();
}

function showNoUpdate() {
  shownUpdate = null;
  at("step").textContent = at("step").className = "";
  at("progress").value = 0;
}

// The last update of the chosen host, if it is under way, or is the one shown and has ended since: the stream may have
// lost its end.
async function readUpdate() {
  const name = chosen;
  if (shownUpdate?.host !== name) showNoUpdate();
  try {
    const last = (await call(of("updates"))).at(-1);
    const hasEnded = last?.asked_ms === shownUpdate?.asked_ms && last?.step !== shownUpdate?.step;
    if (name === chosen && last && (!isOver(last) || hasEnded)) showUpdate(last);
  } catch (error) {
    at("answer").textContent = error.message;
  }
}
