// SPDX-License-Identifier: MIT OR Apache-2.0
// A person's actions on the timeline's page, and the contents that it then shows. Appended to the page by browser.rs.
{
  const seen = [], errors = [];
  addEventListener("error", event => errors.push(event.message));
  const svgs = [...document.querySelectorAll("section > svg")], tables = [...document.querySelectorAll("table")];
  const group = (svg, name) => [...svg.querySelectorAll(".span")].find(g => g.dataset.name.startsWith(name));
  const rect = (svg, name) => group(svg, name)?.querySelector("rect");
  const width = (svg, name) => Number(rect(svg, name)?.getAttribute("width") ?? 0);
  const left = (svg, name) => Number(rect(svg, name)?.getAttribute("x") ?? -1);
  const place = svg => svg.getBoundingClientRect();
  const fire = (target, kind, type, more = {}) => target.dispatchEvent(new kind(type, { bubbles: true, cancelable: true, ...more }));

  const sections = () => [...document.querySelectorAll("section:not([hidden])")];
  const change = (id, value) => {
    const control = document.getElementById(id);
    control[typeof value === "boolean" ? "checked" : "value"] = value;
    fire(control, Event, "change");
  };
  seen.push(`shown: ${sections().map(section => section.querySelector("h2").textContent).join(", ")}`);
  tables[1].rows[0].click();
  seen.push(`on bars: ${group(svgs[1], "step 11").querySelector("text").textContent}`);
  change("run", "all");
  const space = svgs[0].getBoundingClientRect().width - 110, fills = (svg, name, part) => Math.abs(width(svg, name) / part / space - 1) < .05;
  seen.push(`own scales: ${sections().length} ${fills(svgs[0], "guest", 400 / 420)} ${fills(svgs[1], "step 11", 12 / 562)}`);
  const legends = [...document.querySelectorAll(".legend")], first = legends[0].firstChild;
  seen.push(`legends: ${legends.map(legend => legend.children.length).join(" ")} ${first.textContent} ${
    first.querySelector("rect").getAttribute("fill").slice(0, 3)}`);
  change("shared", true);

  seen.push(`runs: ${svgs.length}`, `rows: ${tables.map(table => table.rows.length).join(" ")}`);
  const cells = [...tables[0].rows[0].cells].map(cell => cell.innerText.replace(/\s+/g, " "));
  seen.push(`first row: ${cells[0]} ${cells[3]}`);
  // A microsecond is as wide in one run as in the other.
  const perUs = [width(svgs[0], "guest") / 400, width(svgs[1], "step 11") / 12];
  seen.push(`one scale: ${Math.abs(perUs[0] / perUs[1] - 1) < .05}`);
  seen.push(`moment: ${svgs[0].querySelector(".span path") ? "diamond" : "missing"}`);

  const whole = width(svgs[0], "guest"), target = group(svgs[0], "guest");
  fire(target, MouseEvent, "mousemove", { clientX: 300, clientY: 200 });
  const tip = document.getElementById("tip");
  seen.push(`tip: ${tip.style.display} ${[...tip.children].map(line => line.textContent).join("|")}`);
  fire(target, MouseEvent, "mouseleave");
  seen.push(`tip away: ${tip.style.display}`);

  const box = place(svgs[0]), middle = { clientX: box.left + box.width / 3, clientY: box.top + 40 };
  const second = width(svgs[1], "step 5");
  for (let turn = 0; turn < 3; turn++) fire(svgs[0], WheelEvent, "wheel", { deltaY: -100, ...middle });
  seen.push(`zoomed in: ${width(svgs[0], "guest") > whole * 1.1} ${width(svgs[1], "step 5") > second * 1.5}`);

  const before = left(svgs[1], "step 5");
  svgs[0].setPointerCapture = () => {};
  fire(svgs[0], PointerEvent, "pointerdown", middle);
  fire(svgs[0], PointerEvent, "pointermove", { clientX: middle.clientX - 50, clientY: middle.clientY });
  fire(svgs[0], PointerEvent, "pointerup", middle);
  seen.push(`moved: ${Math.abs(before - left(svgs[1], "step 5") - 50) < 2}`);

  fire(svgs[0], MouseEvent, "dblclick", middle);
  seen.push(`all of it: ${Math.abs(width(svgs[0], "guest") - whole) < .5}`);

  tables[1].rows[0].click();
  const marked = [...document.querySelectorAll(".marked")];
  const share = width(svgs[1], "step 11") / (box.width - 110);
  seen.push(`went there: ${marked.length} ${marked[0]?.dataset.name.slice(0, 7)} ${Math.abs(share - .5) < .02}`);

  seen.unshift(`errors: ${errors.join("; ") || "none"}`);
  const note = Object.assign(document.createElement("pre"), { id: "seen", textContent: `${seen.join("\n")}\n` });
  document.body.append(note);
}
