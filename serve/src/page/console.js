// SPDX-License-Identifier: MIT OR Apache-2.0
// A guest's console. A guest's output is text: it moves the place of the next character, and nothing else.
"use strict";

const MAX_LINES = 2000, MAX_COLUMNS = 500, MAX_WAITING = 16384, MAX_TYPED = 1024;
const KEYS = { Enter: "\r", Backspace: "\x7f", Delete: "\x1b[3~", ArrowUp: "\x1b[A", ArrowDown: "\x1b[B",
  ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D", Home: "\x1b[H", End: "\x1b[F", PageUp: "\x1b[5~", PageDown: "\x1b[6~" };

// --- A guest's output: lines, and the column of the next character. Colours and the like are left out.

class Screen {
  lines = [[]];
  changed = new Set();
  column = 0;
  state = "text";
  sequence = "";

  write(text) {
    for (const character of text) this[this.state](character);
  }

  text(character) {
    const line = this.lines.at(-1);
    if (character === "\x1b") this.state = "escape";
    else if (character === "\r") this.column = 0;
    else if (character === "\n") this.next();
    else if (character === "\b") this.column = Math.max(0, this.column - 1);
    else if (character === "\t") this.column = Math.min(MAX_COLUMNS - 1, (this.column | 7) + 1);
    else if (character >= " " && !(character >= "\x7f" && character < "\xa0")) {
      while (line.length < this.column) line.push(" ");
      line[this.column++] = character;
      this.changed.add(line);
      if (this.column >= MAX_COLUMNS) { this.next(); this.column = 0; }
    }
  }

  next() {
    this.lines.push([]);
    if (this.lines.length > MAX_LINES) this.lines.shift();
  }

  escape(character) {
    this.sequence = "";
    this.state = character === "[" ? "control" : "]PX^_".includes(character) ? "string" : " #%()*+".includes(character)
      ? "one" : "text";
  }

  one() { this.state = "text"; }

  // A string for the terminal itself, such as a window's title, ends with BEL or with ESC and a backslash.
  string(character) {
    if (character === "\x07" || character === "\x1b") this.state = character === "\x07" ? "text" : "one";
  }

  control(character) {
    if (character < "@") {
      // No sequence is longer; one without an end keeps nothing.
      this.sequence = (this.sequence + character).slice(0, 16);
      return;
    }
    this.state = "text";
    const line = this.lines.at(-1);
    this.changed.add(line);
    const count = Math.min(MAX_COLUMNS, Math.max(1, parseInt(this.sequence, 10) || 1));
    if (character === "C") this.column = Math.min(MAX_COLUMNS - 1, this.column + count);
    else if (character === "D") this.column = Math.max(0, this.column - count);
    else if (character === "P") line.splice(this.column, count);
    else if (character === "J" && this.sequence === "2") { this.lines = [[]]; this.column = 0; }
    else if ("JK".includes(character) && /^0?$/.test(this.sequence)) line.length = Math.min(line.length, this.column);
  }

  // Draws what has changed, line by line: a screen reader reads new lines, not all of them again.
  draw(into) {
    while (into.firstChild && into.firstChild.line !== this.lines[0]) into.firstChild.remove();
    for (const line of this.lines.slice(into.childElementCount)) {
      line.element = element("div");
      line.element.line = line;
      into.append(line.element);
      this.changed.add(line);
    }
    for (const line of this.changed) if (line.element) line.element.textContent = `${line.join("")}\n`;
    this.changed.clear();
  }
}

// --- The dialog.

const shown = { guest: null, path: "", stream: null, screen: null, isDrawn: true, typed: "", isSending: false };

function openConsole(guest) {
  const path = of(`guests/${encodeURIComponent(guest)}/console`);
  Object.assign(shown, { guest, path, screen: new Screen(), typed: "" });
  at("console-title").textContent = `Console of ${guest} at ${chosen}`;
  at("keys").disabled = rank < RANKS.operate;
  at("keys-hint").textContent = rank < RANKS.operate ? "Typing needs the role operate." :
    "Each key goes to the guest, but for Tab and Escape: Ctrl-I is Tab, and Ctrl-[ is Escape.";
  at("console-state").textContent = "connecting …";
  at("screen").replaceChildren();
  at("console").showModal();
  (at("keys").disabled ? at("screen") : at("keys")).focus();
  const stream = shown.stream = new EventSource(`/api/v1/${shown.path}`);
  stream.addEventListener("output", event => show(JSON.parse(event.data)));
  stream.onopen = () => { at("console-state").textContent = "live"; };
  stream.onerror = () => {
    at("console-state").textContent = stream.readyState === EventSource.CLOSED ?
      "there is no line to this console; close it and try again" : "the service does not answer; trying again";
  };
}

function closeConsole() {
  const { guest } = shown;
  shown.stream?.close();
  shown.stream = shown.guest = null;
  shown.typed = "";
  document.querySelector(`[data-guest="${CSS.escape(guest ?? "")}"][data-order=console]`)?.focus();
}

function show({ text, lost }) {
  if (lost) shown.screen.write(`\r\n[${lost} bytes were lost]\r\n`);
  shown.screen.write(text);
  if (!shown.isDrawn) return;
  // However much comes, it is drawn once for each picture of the browser.
  shown.isDrawn = false;
  requestAnimationFrame(() => {
    const screen = at("screen"), isAtEnd = screen.scrollTop + screen.clientHeight >= screen.scrollHeight - 4;
    shown.isDrawn = true;
    shown.screen.draw(screen);
    if (isAtEnd) screen.scrollTop = screen.scrollHeight;
  });
}

// --- Typing: bytes are sent in the order of their keys, together while an answer is waited for.

function keyed(event) {
  if (event.isComposing || event.altKey || event.metaKey) return;
  const letter = event.key.length === 1 ? event.key.toUpperCase().charCodeAt(0) : 0;
  // Ctrl-V is the browser's: pasted text comes as input.
  const isControl = event.ctrlKey && letter >= 64 && letter < 96 && event.key !== "v";
  const bytes = isControl ? String.fromCharCode(letter - 64) : event.ctrlKey ? undefined : KEYS[event.key];
  if (bytes === undefined) return;
  event.preventDefault();
  type(bytes);
}

function entered() {
  const text = at("keys").value;
  at("keys").value = "";
  type(text.replaceAll("\n", "\r"));
}

async function type(text) {
  if (shown.typed.length + text.length > MAX_WAITING) {
    at("console-state").textContent = `not typed: more than ${MAX_WAITING} characters wait for the guest`;
    return;
  }
  shown.typed += text;
  if (shown.isSending) return;
  shown.isSending = true;
  while (shown.guest !== null && shown.typed) {
    const bytes = new Uint8Array(MAX_TYPED), { read, written } = new TextEncoder().encodeInto(shown.typed, bytes);
    shown.typed = shown.typed.slice(read);
    try {
      await call(shown.path, { method: "POST", body: bytes.subarray(0, written) });
    } catch (error) {
      shown.typed = "";
      at("console-state").textContent = `not typed: ${error.message}`;
    }
  }
  shown.isSending = false;
}

at("keys").addEventListener("keydown", keyed);
at("keys").addEventListener("input", entered);
at("console-close").addEventListener("click", () => at("console").close());
at("console").addEventListener("close", closeConsole);
at("console").addEventListener("keydown", event => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  at("console").close();
});
