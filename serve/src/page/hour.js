// SPDX-License-Identifier: MIT OR Apache-2.0
// CPU time of the last hour, of the host's CPUs and by guest: a picture of each, and the same as a table.
"use strict";

const HOUR_MS = 3600e3, BUCKET_MS = 300e3, HOUR_EVERY_MS = 30e3, HOUR_FIRST_MS = 1e3;
const WIDE = 720, HIGH = 140, LEFT = 36, TOP = 8, BOTTOM = 120;
let hourRead = 0, isHourEmpty = true;

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const clockTime = ms => new Date(ms).toTimeString().slice(0, 5);
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

// Where no samples were taken there is no line: the host was out of reach.
function pieces(points) {
  const steps = points.slice(1).map((point, at) => point.at_ms - points[at].at_ms).sort((a, b) => a - b);
  const longest = 3 * (steps[Math.floor(steps.length / 2)] ?? 0), all = [];
  points.forEach((point, at) => {
    if (at === 0 || point.at_ms - points[at - 1].at_ms > longest) all.push([]);
    all.at(-1).push(point);
  });
  return all;
}

function curve(points, most, until) {
  const x = ms => LEFT + (WIDE - LEFT) * (1 - (until - ms) / HOUR_MS), y = value => BOTTOM - (BOTTOM - TOP) * value / most;
  const place = ({ at_ms, value }) => `${x(at_ms).toFixed(1)},${y(value).toFixed(1)}`;
  return pieces(points).map(piece => piece.length > 1 ? `M${piece.map(place).join("L")}` : `M${place(piece[0])}h1`).join("");
}

// Values by the start of their five minutes.
function buckets(points) {
  const all = new Map();
  for (const { at_ms, value } of points) {
    const start = Math.floor(at_ms / BUCKET_MS) * BUCKET_MS;
    all.set(start, [...all.get(start) ?? [], value]);
  }
  return all;
}

// Of one line there are mean and most, of several the mean of each.
function hourTable(name, lines) {
  const parts = lines.map(({ points }) => buckets(points)), cell = value => element("td", value?.toFixed(2) ?? "");
  const table = element("table"), head = element("tr"), body = element("tbody"), top = element("thead");
  const heads = lines.length > 1 ? lines.map(({ label }) => label) : ["Mean", "Most"];
  head.append(...["From", ...heads].map(text => element("th", text, { scope: "col" })));
  top.append(head);
  for (const [start, values] of parts[0]) {
    const row = element("tr"), means = parts.map(part => part.has(start) ? mean(part.get(start)) : undefined);
    const figures = lines.length > 1 ? means : [...means, Math.max(...values)];
    row.append(element("th", clockTime(start), { scope: "row" }), ...figures.map(cell));
    body.append(row);
  }
  table.append(element("caption", `${name}, in CPUs, by five minutes`), top, body);
  const details = element("details");
  details.append(element("summary", `${name} as a table`), table);
  return details;
}

// The figures of one line or of several, as text: now, and over the hour.
function hourTexts(lines, most) {
  const values = lines.map(({ points }) => points.map(point => point.value)), [only] = values;
  if (lines.length === 1) {
    const text = `now ${only.at(-1).toFixed(2)} CPUs, at most ${Math.max(...only).toFixed(2)}`;
    return [text, `${text}; on average ${mean(only).toFixed(2)} of ${most}`];
  }
  const each = figure => lines.map(({ label }, at) => `${label} ${figure(values[at]).toFixed(2)}`).join(", ");
  const text = `now ${each(all => all.at(-1))} of ${most} CPUs`;
  return [text, `${text}; on average ${each(mean)}`];
}

// Lines differ in their dashes, not in colour alone.
function legend(lines) {
  const list = element("ul", undefined, { class: "legend" });
  list.append(...lines.map(({ label }, at) => {
    const item = element("li"), sample = drawn("svg", { viewBox: "0 0 32 8", "aria-hidden": "true" });
    sample.append(drawn("path", { d: "M0,4h32", class: `line-${at}` }));
    item.append(sample, ` ${label}`);
    return item;
  }));
  return list;
}

function hourFigure({ name, lines, most }, number, until) {
  const figure = element("figure", undefined, { class: "hour", "data-of": name });
  const [text, description] = hourTexts(lines, most), titles = [`hour-${number}-title`, `hour-${number}-desc`];
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-labelledby": titles.join(" ") });
  svg.append(drawn("title", { id: titles[0] }, `CPU time of ${name} over the last hour`),
    drawn("desc", { id: titles[1] }, description),
    drawn("line", { x1: LEFT, x2: WIDE, y1: BOTTOM, y2: BOTTOM }), drawn("line", { x1: LEFT, x2: WIDE, y1: TOP, y2: TOP }),
    ...lines.map(({ points }, at) => drawn("path", { d: curve(points, most, until), class: `line-${at}` })),
    drawn("text", { x: 0, y: TOP + 5 }, most),
    drawn("text", { x: 0, y: BOTTOM }, 0), drawn("text", { x: LEFT, y: HIGH - 4 }, clockTime(until - HOUR_MS)),
    drawn("text", { x: WIDE, y: HIGH - 4, class: "end" }, clockTime(until)));
  figure.append(element("figcaption", `${name}: ${text}`), svg, ...lines.length > 1 ? [legend(lines)] : [],
    hourTable(name, lines));
  return figure;
}

function showHour(series) {
  const until = Date.now(), of = metric => series.filter(one => one.metric === metric && one.points.length);
  const cpus = Math.max(of("cpus_online").at(0)?.points.at(-1).value ?? 1, 1);
  const lines = ["guests", "host", "idle"].flatMap(label =>
    of(`cpus_${label}`).map(({ points }) => ({ label, points })));
  const host = lines.length === 3 ? [{ name: "the host's CPUs", lines, most: cpus }] : [];
  const all = of("guests_cpu").map(({ points }) => ({ name: "all guests", lines: [{ points }], most: cpus }));
  const guests = of("guest_cpu").map(({ of: name, points }) =>
    ({ name, lines: [{ points }], most: Math.max(1, Math.ceil(Math.max(...points.map(point => point.value)))) }));
  const open = new Set([...document.querySelectorAll("#hour details[open]")].map(it => it.parentElement.dataset.of));
  const focused = document.activeElement?.closest?.("#hour figure")?.dataset.of;
  isHourEmpty = host.length === 0 || guests.length === 0;
  const figures = [...host, ...all, ...guests].map((one, number) => hourFigure(one, number, until));
  at("hour").replaceChildren(...figures.length ? figures : [element("p", "no samples yet")]);
  for (const figure of figures) {
    figure.querySelector("details").open = open.has(figure.dataset.of);
    if (figure.dataset.of === focused) figure.querySelector("summary").focus();
  }
}

async function readHour() {
  const name = chosen;
  hourRead = Date.now();
  try {
    const series = await call(of(`history?from=${hourRead - HOUR_MS}`));
    if (name === chosen) showHour(series);
  } catch (error) {
    if (name === chosen) at("hour").replaceChildren(element("p", error.message));
  }
}

// The page's news of the host are its clock.
function refreshHour() {
  if (Date.now() - hourRead >= (isHourEmpty ? HOUR_FIRST_MS : HOUR_EVERY_MS)) readHour();
}
