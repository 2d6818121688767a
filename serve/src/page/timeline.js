// SPDX-License-Identifier: MIT OR Apache-2.0
// The timeline: a bar for each run; the blackout is red; the steps by CPU are a list, and the page behind the link.
"use strict";

function bar(run) {
  const end = Math.max(1e-9, ...run.tracks.flatMap(track => track.spans.map(span => span.start_us + span.length_us)));
  const overview = run.tracks.find(track => track.name === "overview")?.spans ?? [];
  const figure = element("figure", undefined, { class: "run" });
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 1000 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", overview.map(span => `${span.name}: ${time(span.length_us)}`).join("; ") || run.name);
  for (const span of overview) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("x", span.start_us / end * 1000);
    rect.setAttribute("width", Math.max(2, span.length_us / end * 1000));
    rect.setAttribute("height", 20);
    if (/still|no guest/.test(span.name)) rect.setAttribute("class", "still");
    svg.append(rect);
  }
  const list = element("ul");
  list.append(...overview.map(span => element("li", `${span.name}: ${time(span.length_us)}`)), ...waits(run, overview));
  figure.append(element("figcaption", `${run.name}, ${time(end)}`), svg, list);
  return figure;
}

// Which CPU was last in each step of the blackout: the others have waited for it.
function waits(run, overview) {
  const still = overview.find(span => /still/.test(span.name));
  if (!still) return [];
  const last = new Map(), until = still.start_us + still.length_us;
  for (const { name, spans } of run.tracks.filter(track => track.name !== "overview")) {
    for (const span of spans) {
      const isInside = span.length_us > 0 && span.start_us >= still.start_us && span.start_us + span.length_us <= until;
      if (!isInside || span.name === "update: blackout") continue;
      const ended = span.start_us + span.length_us - still.start_us;
      if (ended > (last.get(span.name)?.ended ?? -1)) last.set(span.name, { ended, cpu: name });
    }
  }
  return [...last].map(([step, { ended, cpu }]) => element("li", `${step}: ${cpu} was last, after ${time(ended)}`));
}

async function readTimeline() {
  const name = chosen;
  if (hosts.get(name)?.state !== "connected") return;
  try {
    const runs = await call(of("timeline"));
    if (name === chosen) at("timeline").replaceChildren(...runs.reverse().map(bar));
  } catch (error) {
    if (name === chosen) at("timeline").replaceChildren(element("p", error.message));
  }
}
