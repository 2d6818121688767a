// SPDX-License-Identifier: MIT OR Apache-2.0
// A person's actions on a flame graph, and the contents that it then shows. Appended to the picture by browser.rs.
{
  const seen = [], errors = [];
  addEventListener("error", event => errors.push(event.message));
  const all = [...document.querySelectorAll("g.box")], shown = () => all.filter(g => getComputedStyle(g).display !== "none");
  const width = g => Math.round(g.querySelector("rect").getBBox().width);
  const row = g => `${g.dataset.name} ${width(g)}${g.getAttribute("opacity") === "0.5" ? " pale" : ""}`;
  const note = name => seen.push(`${name}: ${shown().map(row).join(", ")}`);
  const box = name => all.find(g => g.dataset.name === name);
  const click = target => target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const field = document.querySelector("input"), marked = () => all.filter(g => g.classList.contains("marked"));

  note("at first");
  click(box("run").querySelector("rect"));
  note("zoomed");
  seen.push(`label: ${box("exit<T>").querySelector("text").textContent}`);
  click(box("exit_late"));
  note("deeper");
  field.value = "EXIT";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  seen.push(`marked: ${marked().map(g => g.dataset.name).join(", ")}: ${document.querySelector(".found").textContent}`);
  click(document.querySelector("button"));
  seen.push(`reset: ${shown().length} shown, ${marked().length} marked, field ${field.value === "" ? "empty" : "full"}`);
  click(box("run"));
  dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  seen.push(`escape: ${shown().length} shown`);

  const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
  text.id = "seen";
  text.textContent = [`errors: ${errors.join("; ") || "none"}`, ...seen, ""].join("\n");
  document.documentElement.append(text);
}
