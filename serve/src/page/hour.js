// SPDX-License-Identifier: MIT OR Apache-2.0
// CPU time of the last hour, by guest: a picture, and the same as a table.
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

function hourTable(name, points) {
  const buckets = new Map();
  for (const { at_ms, value } of points) {
    const start = Math.floor(at_ms / BUCKET_MS) * BUCKET_MS;
    buckets.set(start, [...buckets.get(start) ?? [], value]);
  }
  const table = element("table"), head = element("tr"), body = element("tbody"), top = element("thead");
  head.append(...["From", "Mean", "Most"].map(text => element("th", text, { scope: "col" })));
  top.append(head);
  for (const [start, values] of buckets) {
    const row = element("tr");
    row.append(element("th", clockTime(start), { scope: "row" }), element("td", mean(values).toFixed(2)),
      element("td", Math.max(...values).toFixed(2)));
    body.append(row);
  }
  table.append(element("caption", `${name}, in CPUs, by five minutes`), top, body);
  const details = element("details");
  details.append(element("summary", `${name} as a table`), table);
  return details;
}

function hourFigure({ name, points, most }, number, until) {
  const figure = element("figure", undefined, { class: "hour", "data-of": name });
  const values = points.map(point => point.value), titles = [`hour-${number}-title`, `hour-${number}-desc`];
  const text = `now ${values.at(-1).toFixed(2)} CPUs, at most ${Math.max(...values).toFixed(2)}`;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-labelledby": titles.join(" ") });
  svg.append(drawn("title", { id: titles[0] }, `CPU time of ${name} over the last hour`),
    drawn("desc", { id: titles[1] }, `${text}; on average ${mean(values).toFixed(2)} of ${most}`),
    drawn("line", { x1: LEFT, x2: WIDE, y1: BOTTOM, y2: BOTTOM }), drawn("line", { x1: LEFT, x2: WIDE, y1: TOP, y2: TOP }),
    drawn("path", { d: curve(points, most, until) }), drawn("text", { x: 0, y: TOP + 5 }, most),
    drawn("text", { x: 0, y: BOTTOM }, 0), drawn("text", { x: LEFT, y: HIGH - 4 }, clockTime(until - HOUR_MS)),
    drawn("text", { x: WIDE, y: HIGH - 4, class: "end" }, clockTime(until)));
  figure.append(element("figcaption", `${name}: ${text}`), svg, hourTable(name, points));
  return figure;
}

function showHour(series) {
  const until = Date.now(), of = metric => series.filter(one => one.metric === metric && one.points.length);
  const cpus = of("cpus_online").at(0)?.points.at(-1).value ?? 1;
  const all = of("guests_cpu").map(({ points }) => ({ name: "all guests", points, most: Math.max(cpus, 1) }));
  const guests = of("guest_cpu").map(({ of: name, points }) =>
    ({ name, points, most: Math.max(1, Math.ceil(Math.max(...points.map(point => point.value)))) }));
  const open = new Set([...document.querySelectorAll("#hour details[open]")].map(it => it.parentElement.dataset.of));
  const focused = document.activeElement?.closest?.("#hour figure")?.dataset.of;
  isHourEmpty = guests.length === 0;
  const figures = [...all, ...guests].map((one, number) => hourFigure(one, number, until));
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
