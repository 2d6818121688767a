// SPDX-License-Identifier: MIT OR Apache-2.0
// The boot's bar on the service's page, and the page with the timeline of all CPUs, to which its link leads.

// Reports the bar of a run: its caption, its name for screen readers, its rectangles, its list.
function bar(d, run) {
  const figure = [...d.querySelectorAll("#timeline .run")].find(one => one.textContent.startsWith(run));
  const svg = figure.querySelector("svg"), rects = [...svg.querySelectorAll("rect")].map(rect =>
    `${rect.getAttribute("class") ?? "run"} from ${rect.getAttribute("x")} for ${rect.getAttribute("width")}`);
  const list = [...figure.querySelectorAll("li")].map(li => li.textContent);
  return `${figure.querySelector("figcaption").textContent}; ${svg.getAttribute("aria-label")}; ${
    rects.join(", ")} of ${svg.viewBox.baseVal.width}; ${list.join(" | ")}`;
}

// Reports the run that the page shows: its title, its bars, the longest of its table.
function shownRun(d) {
  const [section, ...others] = [...d.querySelectorAll("section")].filter(one => !one.hidden);
  const bars = [...section.querySelectorAll("svg .span")].map(group => group.dataset.name);
  const row = section.querySelector("tr");
  return `${section.querySelector("h2").textContent}; ${bars.join(", ")}; ${
    [...row?.cells ?? []].map(cell => cell.textContent).join(" ")}${others.length ? "; and others" : ""}`;
}

async function wholeTimeline() {
  page.contentDocument.getElementById("whole").click();
  await until("the whole timeline", d => d.querySelector("h1").textContent === "Timeline of rack1"
    && d.querySelector("section svg .span"));
  const d = page.contentDocument, runs = d.getElementById("run");
  seen.push(`whole: ${page.contentWindow.location.pathname}; ${[...runs.options].map(one => one.text).join(", ")}`);
  seen.push(`last run: ${shownRun(d)}`);
  runs.value = "0";
  runs.dispatchEvent(new page.contentWindow.Event("change"));
  seen.push(`first run: ${shownRun(d)}`);
  await axe("the whole timeline");
}
