// SPDX-License-Identifier: MIT OR Apache-2.0
// The page of `baton serve`. Everything that a host reports is text to it, never markup.
"use strict";

const RANKS = { read: 0, operate: 1, update: 2 };
const ORDERS = { running: ["stop", "reset", "pause"], hung: ["stop", "reset"], panicked: ["stop", "reset"],
  paused: ["resume", "stop"], stopped: ["start"], failed: ["start"], loading: [] };
// Orders after which a guest's work is lost.
const FATAL = ["stop", "reset"];
const MAX_EVENTS = 200;

const at = id => document.getElementById(id);
const hosts = new Map();
let rank = 0, chosen = null, asked = 0;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (count >= 1024 && place < units.length - 1) { count /= 1024; place++; }
  return `${count.toFixed(count < 10 && place ? 1 : 0)} ${units[place]}`;
}

function time(us) {
  return us < 1e3 ? `${us.toFixed(0)} µs` : us < 1e6 ? `${(us / 1e3).toFixed(1)} ms` : `${(us / 1e6).toFixed(2)} s`;
}

async function call(path, options = {}) {
  const answer = await fetch(`/api/v1/${path}`, options);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.message ?? answer.statusText);
  return body;
}

const of = path => `hosts/${encodeURIComponent(chosen)}/${path}`;

// --- The list of hosts.

function showHosts() {
  const list = at("hosts"), focused = document.activeElement?.dataset?.host;
  list.replaceChildren(...[...hosts.values()].map(host => {
    const button = element("button", host.name, { type: "button", "data-host": host.name });
    const state = element("span", ` ${host.state}`, { class: host.state === "connected" ? "good" : "bad" });
    button.append(state);
    if (host.name === chosen) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(host.name, true));
    const item = element("li");
    item.append(button);
    return item;
  }));
  if (focused) list.querySelector(`[data-host="${CSS.escape(focused)}"]`)?.focus();
}

function choose(name, isByHand) {
  chosen = name;
  location.hash = name;
  for (const id of ["guests", "cpus", "hour", "events", "timeline", "facts"]) at(id).replaceChildren();
  at("answer").textContent = "";
  readUpdate();
  at("whole").href = `/api/v1/${of("timeline.html")}`;
  showHosts();
  showFacts();
  refresh();
  readEvents();
  readTimeline();
  readHour();
  if (isByHand) at("main").focus();
}

// --- The chosen host.

function showFacts() {
  const host = hosts.get(chosen);
  at("host").textContent = host.name;
  const facts = [["Line", host.address], ["State", host.reason ?? host.state]];
  if (host.state === "connected") {
    facts.push(["Image", `${host.version} ${host.build ? `(${host.build})` : ""}, generation ${host.generation}`],
      ["Up", time(host.uptime_ns / 1e3)], ["CPUs in use", host.cpus],
      ["Memory", `${bytes(host.memory_free_bytes)} of ${bytes(host.memory_total_bytes)} free`]);
  }
  at("facts").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
  at("update").querySelector("button").disabled = rank < RANKS.update || host.state !== "connected";
}

// A reading that a later one has overtaken is not shown.
async function refresh() {
  const number = ++asked, name = chosen;
  if (hosts.get(name)?.state !== "connected") {
    at("guests").replaceChildren();
    at("cpus").replaceChildren();
    return;
  }
  try {
    const [guests, cpus] = await Promise.all([call(of("guests")), call(of("cpus"))]);
    if (number !== asked || name !== chosen) return;
    showGuests(guests);
    showCpus(cpus);
  } catch (error) {
    if (name === chosen) at("answer").textContent = error.message;
  }
}

// Rows are replaced under a person's hands: the focus goes to the same button again.
function keepingFocus(change) {
  const { guest, order } = document.activeElement?.dataset ?? {};
  change();
  if (!guest) return;
  const row = `[data-guest="${CSS.escape(guest)}"]`;
  (document.querySelector(`${row}[data-order="${CSS.escape(order)}"]`) ?? document.querySelector(row))?.focus();
}

function showGuests(guests) {
  keepingFocus(() => at("guests").replaceChildren(...guests.map(guest => {
    const row = element("tr", undefined, { "data-name": guest.name });
    const isGood = ["running", "paused", "stopped", "loading"].includes(guest.state);
    const state = element("td", guest.state, { class: isGood ? "" : "bad" });
    if (guest.reason) state.title = guest.reason;
    const orders = element("td");
    for (const order of ORDERS[guest.state] ?? []) {
      const button = element("button", order,
        { type: "button", "aria-label": `${order} ${guest.name}`, "data-guest": guest.name, "data-order": order });
      button.disabled = rank < RANKS.operate;
      button.addEventListener("click", () => command(guest.name, order));
      orders.append(button, " ");
    }
    const console = element("button", "console", { type: "button", "aria-label": `console of ${guest.name}`,
      "data-guest": guest.name, "data-order": "console" });
    console.addEventListener("click", () => openConsole(guest.name));
    orders.append(console);
    row.append(element("th", guest.name, { scope: "row" }), state, element("td", guest.vcpus),
      element("td", bytes(guest.memory_bytes)), element("td", guest.exits_total.toLocaleString("en")), orders);
    return row;
  })));
}

function showCpus(cpus) {
  at("cpus").replaceChildren(...cpus.map(cpu => {
    const row = element("tr"), busy = element("td");
    if (cpu.shares) {
      const { guests, host, idle } = cpu.shares, percent = share => `${(share * 100).toFixed(1)} %`;
      busy.append(element("meter", undefined, { value: 1 - idle, "aria-label": `CPU ${cpu.index} busy` }),
        ` ${percent(1 - idle)}: guests ${percent(guests)}, host ${percent(host)}`);
    }
    row.append(element("th", cpu.index, { scope: "row" }), element("td", cpu.state), busy,
      element("td", cpu.vcpus.map(({ vm, vcpu }) => `${vm}/${vcpu}`).join(" ")));
    return row;
  }));
}

// --- Orders.

function confirmed(question) {
  const dialog = at("ask"), before = document.activeElement;
  at("question").textContent = question;
  dialog.showModal();
  at("no").focus();
  return new Promise(resolve => {
    const end = answer => () => { dialog.close(); before?.focus?.(); resolve(answer); };
    at("yes").onclick = end(true);
    at("no").onclick = dialog.oncancel = end(false);
  });
}

async function command(guest, order) {
  const path = of(`guests/${encodeURIComponent(guest)}/${order}`);
  if (FATAL.includes(order) && !await confirmed(`${order} ${guest}? Its work is lost, as if its power were cut.`)) return;
  at("answer").textContent = `${order} ${guest} …`;
  try {
    await call(path, { method: "POST" });
    at("answer").textContent = `${order} ${guest}: done`;
  } catch (error) {
    at("answer").textContent = `${order} ${guest}: ${error.message}`;
  }
}

// --- Events.

function line({ record, kind, time_ns }) {
  const what = kind ?? record.kind, [name, more] = typeof what === "string" ? [what, {}] : Object.entries(what)[0];
  const details = Object.entries(more).map(([key, value]) => key === "name" ? value : `${key} ${value}`).join(", ");
  return element("li", `${(time_ns / 1e9).toFixed(3)} s  ${name}${details ? `: ${details}` : ""}`);
}

async function readEvents() {
  const name = chosen;
  try {
    const events = await call(of(`events?limit=${MAX_EVENTS}`));
    if (name !== chosen) return;
    const shown = at("events");
    shown.dataset.last = events.at(-1)?.id ?? 0;
    shown.replaceChildren(...events.reverse().map(line));
  } catch (error) {
    at("answer").textContent = error.message;
  }
}

function showEvent(event) {
  const shown = at("events");
  if (event.host !== chosen || event.id <= Number(shown.dataset.last ?? 0)) return;
  shown.dataset.last = event.id;
  shown.prepend(line(event));
  while (shown.children.length > MAX_EVENTS) shown.lastChild.remove();
  if ("host-updated" in Object(event.kind)) readTimeline();
}

// --- From here on it is live.

function showHost(host) {
  const before = hosts.get(host.name)?.state;
  hosts.set(host.name, host);
  showHosts();
  if (chosen === null) return choose(hosts.has(location.hash.slice(1)) ? location.hash.slice(1) : host.name, false);
  if (host.name !== chosen) return;
  showFacts();
  refresh();
  refreshHour();
  if (before !== host.state && host.state === "connected") { readEvents(); readTimeline(); }
}

function listen() {
  const stream = new EventSource("/api/v1/stream");
  const on = (name, show) => stream.addEventListener(name, event => show(JSON.parse(event.data)));
  on("host", showHost);
  on("event", showEvent);
  on("update", showUpdate);
  on("lost", () => chosen && choose(chosen, false));
  stream.onopen = () => {
    at("link").textContent = "live";
    if (chosen !== null) readUpdate();
  };
  stream.onerror = () => { at("link").textContent = "the service does not answer; trying again"; };
}

at("update").addEventListener("submit", event => update(event));
call("whoami").then(me => {
  rank = RANKS[me.role] ?? 0;
  at("me").textContent = `${me.who}: role ${me.role}`;
  listen();
}, error => { at("link").textContent = error.message; });
