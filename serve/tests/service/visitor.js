// SPDX-License-Identifier: MIT OR Apache-2.0
// A person's actions on the service's page, and the contents that it then shows; run by browser.rs through a frame.
const seen = [], wait = ms => new Promise(resolve => setTimeout(resolve, ms));
const page = document.querySelector("iframe");
const errors = [];
async function until(what, is) {
  for (let turn = 0; turn < 2400; turn++) {
    try { const value = is(page.contentDocument); if (value) return value; } catch (error) { void error; }
    await wait(25);
  }
  throw new Error(`not seen: ${what}`);
}
const row = (d, name) => [...d.querySelectorAll("#guests tr")].find(r => r.dataset.name === name);
const state = (d, name) => row(d, name)?.cells[1].textContent;
const order = (d, name) => [...row(d, name).querySelectorAll("button")].map(b => b.textContent).join(" ");

async function visit() {
  await until("guests", d => row(d, "web"));
  const d = page.contentDocument;
  page.contentWindow.addEventListener("error", event => errors.push(event.message));
  seen.push(`who: ${d.getElementById("me").textContent}`);
  await until("rack2 is unreachable", d => /unreachable/.test(d.querySelector("[data-host=rack2]").textContent));
  seen.push(`hosts: ${[...d.querySelectorAll("#hosts button")].map(b => b.textContent).join(", ")}`);
  seen.push(`guests: web ${state(d, "web")} [${order(d, "web")}], db ${state(d, "db")} [${order(d, "db")}]`);
  await until("the CPU's use", d => /%/.test(d.querySelector("#cpus tr").innerText));
  const busy = d.getElementById("cpus").closest("table").tHead.rows[0].cells[2].textContent;
  seen.push(`cpu: ${d.querySelector("#cpus tr").innerText.replace(/\s+/g, " ").trim()}; ${busy}; ${
    d.querySelector("#cpus meter").value.toFixed(2)}`);
  const hour = d => d.querySelector("#hour figure[data-of=web]");
  await until("the last hour", d => /now 0.25/.test(hour(d)?.querySelector("figcaption").textContent));
  const picture = hour(d).querySelector("svg"), table = hour(d).querySelector("table");
  const names = picture.getAttribute("aria-labelledby").split(" ").map(id => d.getElementById(id).textContent);
  const figures = names[1].split("; on average")[0], newest = [...table.tBodies[0].rows].at(-1).cells[2].textContent;
  // A piece of one point ends with a short stroke.
  const height = picture.querySelector("path").getAttribute("d").match(/,([\d.]+)(h1)?$/)?.[1];
  seen.push(`hour: ${hour(d).querySelector("figcaption").textContent}; ${names[0]}; ${figures}; ${height}; ${
    table.caption.textContent}: ${newest}`);
  await until("the host's CPUs", d => d.querySelector("#hour figure").dataset.of === "the host's CPUs");
  const cpus = d.querySelector("#hour figure"), use = cpus.querySelector("table");
  const ends = [...cpus.querySelectorAll("svg[role] path")].map(path => path.getAttribute("d").match(/,([\d.]+)(h1)?$/)?.[1]);
  seen.push(`host: ${cpus.querySelector("figcaption").textContent}; ${
    [...cpus.querySelectorAll(".legend li")].map(li => li.textContent.trim()).join(" ")}; ${ends.join(" ")}; ${
    [...use.tHead.rows[0].cells].map(cell => cell.textContent).join(" ")}: ${
    [...[...use.tBodies[0].rows].at(-1).cells].slice(1).map(cell => cell.textContent).join(" ")}`);
  await until("an event", d => d.querySelector("#events li"));
  seen.push(`events: ${[...d.querySelectorAll("#events li")].map(li => li.textContent.trim()).join(" | ")}`);

  await until("the boot", d => /^boot/.test(d.querySelector("#timeline .run")?.textContent));
  seen.push(`boot: ${bar(d, "boot")}`);

  await axe("guests and the last hour");

  // By keyboard alone: the button has the focus, the question has its safe answer focused.
  const stop = row(d, "web").querySelector("[data-order=stop]");
  stop.focus();
  stop.click();
  const dialog = d.getElementById("ask");
  seen.push(`asked: ${dialog.open} ${d.activeElement.id} ${d.getElementById("question").textContent}`);
  await axe("a question");
  d.getElementById("no").click();
  await wait(50);
  seen.push(`no: ${dialog.open} ${state(d, "web")}`);
  row(d, "web").querySelector("[data-order=stop]").click();
  d.getElementById("yes").click();
  await until("web is stopped", d => state(d, "web") === "stopped");
  await until("the answer", d => d.getElementById("answer").textContent === "stop web: done");
  await until("the event", d => /vm-stopped: web/.test(d.querySelector("#events li").textContent));
  seen.push(`stopped: ${order(d, "web")}`);
  row(d, "web").querySelector("[data-order=start]").click();
  await until("web runs", d => state(d, "web") === "running");

  // A console: by keyboard alone it is opened, typed on and left.
  const open = row(d, "web").querySelector("[data-order=console]");
  open.focus();
  open.click();
  const screen = () => d.getElementById("screen").textContent.split("\n").slice(-4).join("\n");
  const key = (key, more) => d.activeElement.dispatchEvent(
    new page.contentWindow.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
  await until("the console", () => /login: /.test(screen()));
  seen.push(`console: ${d.getElementById("console-title").textContent}; ${d.activeElement.id}; ${
    d.getElementById("screen").children.length} lines, ${JSON.stringify(screen())}; ${
    d.getElementById("console-state").textContent}`);
  // The guest echoes typed bytes: this clears the screen.
  d.activeElement.value = "\u001b[2J\u00f6x\ny";
  d.activeElement.dispatchEvent(new page.contentWindow.Event("input"));
  for (const [name, more] of [["Backspace"], ["ArrowUp"], ["c", { ctrlKey: true }], ["[", { ctrlKey: true }], ["a"]]) {
    key(name, more);
  }
  await until("the echo", () => /^yx/.test(screen()));
  seen.push(`cleared: ${d.getElementById("screen").children.length} line`);
  await axe("a console");
  key("Escape");
  await until("the button again", d => d.activeElement.dataset.order === "console");
  seen.push(`left: ${d.activeElement.getAttribute("aria-label")}, ${d.getElementById("console").open}`);

  const files = new page.contentWindow.DataTransfer();
  const image = await (await fetch("/image")).arrayBuffer();
  files.items.add(new page.contentWindow.File([image], "baton.elf"));
  d.getElementById("image").files = files.files;
  d.querySelector("#update button").click();
  await until("the question", d => d.getElementById("ask").open);
  d.getElementById("yes").click();
  await until("updated", d => /done/.test(d.getElementById("step").textContent));
  seen.push(`update: ${d.getElementById("step").textContent}, progress ${d.getElementById("progress").value}`);
  // The answer to the order comes later than its end by the stream, and states an earlier step.
  await until("the late answer", () => page.contentWindow.performance.getEntriesByType("resource")
    .some(({ name, responseEnd }) => /update\?by=/.test(name) && responseEnd > 0));
  await wait(50);
  seen.push(`late: ${d.getElementById("step").textContent}`);
  // The page does this when the stream has lost messages.
  page.contentWindow.choose("rack1", false);
  await wait(50);
  seen.push(`chosen again: ${d.getElementById("step").textContent}`);
  await until("its timeline", d => /update to generation 2/.test(d.getElementById("timeline").textContent));
  const lines = [...d.querySelector("#timeline .run").querySelectorAll("li")].map(li => li.textContent);
  seen.push(`timeline: ${lines.join(" | ")}`);
  await until("its event", d => /host-updated/.test(d.querySelector("#events li").textContent));

  await axe("an update and its timeline");

  // Needs of people with a screen reader or a keyboard.
  const unnamed = [...d.querySelectorAll("button, input, progress, meter, [role=img], iframe")].filter(e =>
    !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length));
  seen.push(`landmarks: ${["header", "nav[aria-label]", "main", "h1", "h2"].every(s => d.querySelector(s))}`);
  seen.push(`unnamed: ${unnamed.map(e => e.outerHTML).join(" ") || "none"}, lang ${d.documentElement.lang}`);
  const ids = [...d.querySelectorAll("[id]")].map(e => e.id);
  seen.push(`ids: ${new Set(ids).size === ids.length}, contrast ${contrast(d).join(" ") || "good"}`);
  seen.push(`elsewhere: ${page.contentWindow.performance.getEntriesByType("resource")
    .filter(entry => !entry.name.startsWith(location.origin)).length}`);
  await wholeTimeline();
}

// Texts below the ratio of WCAG 2.1, 1.4.3.
function contrast(d) {
  const numbers = text => text.match(/[\d.]+/g).map(Number);
  const light = rgb => rgb.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [.2126, .7152, .0722][place], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const rgb = numbers(page.contentWindow.getComputedStyle(e).backgroundColor);
      if (rgb[3] !== 0) return rgb;
    }
    return [255, 255, 255];
  };
  const texts = [...d.querySelectorAll("body *")].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
    && e.getClientRects().length && !e.disabled);
  return texts.filter(e => {
    const pair = [light(numbers(page.contentWindow.getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
    return (pair[0] + .05) / (pair[1] + .05) < 4.5;
  }).map(e => `${e.tagName}:${e.textContent.slice(0, 20)}`);
}

visit().catch(error => errors.push(error.message)).finally(() => {
  seen.unshift(`errors: ${errors.join("; ") || "none"}`);
  fetch("/seen", { method: "POST", body: seen.join("\n") });
});
