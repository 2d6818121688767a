// SPDX-License-Identifier: MIT OR Apache-2.0
// The flame graph in a browser: a click on a box shows it and what it calls in full width, the field marks boxes by
// their names. Without scripts the picture is the whole profile.
"use strict";
{
  const WIDTH = 1200, MARGIN = 10, LETTER = 6.6, NARROWEST = 0.2;
  const svg = document.querySelector("svg.flame") ?? document.documentElement;
  const of = (g, name) => Number(g.dataset[name]);
  const boxes = [...svg.querySelectorAll("g.box")].map(g => ({
    g, rect: g.querySelector("rect"), text: g.querySelector("text"), name: g.dataset.name,
    from: of(g, "from"), to: of(g, "from") + of(g, "samples"), depth: of(g, "depth"),
  }));
  const field = svg.querySelector("input"), found = svg.querySelector(".found"), reset = svg.querySelector("button");
  const root = boxes[0];

  // Places a box in the part of the profile that is shown.
  const place = (box, shown) => {
    const left = Math.max(box.from, shown.from), right = Math.min(box.to, shown.to);
    const scale = WIDTH / (shown.to - shown.from), width = (right - left) * scale, x = MARGIN + (left - shown.from) * scale;
    const isThere = width >= NARROWEST && (box.depth >= shown.depth || box.from <= shown.from && box.to >= shown.to);
    box.g.setAttribute("display", isThere ? "inline" : "none");
    if (!isThere) return;
    box.rect.setAttribute("x", x.toFixed(2));
    box.rect.setAttribute("width", width.toFixed(2));
    box.text.setAttribute("x", (x + 2).toFixed(2));
    const letters = Math.max(0, Math.floor((width - 4) / LETTER));
    box.text.textContent = letters < 3 ? "" : [...box.name].slice(0, letters).join("");
    // Its callers are shown pale: their other callees are out of sight.
    box.g.setAttribute("opacity", box.depth < shown.depth ? 0.5 : 1);
  };
  const zoom = shown => boxes.forEach(box => place(box, shown));

  // Marks the boxes with this in their names; samples in a box above a marked one count once.
  const search = wanted => {
    const word = wanted.trim().toLowerCase();
    let samples = 0, counted = 0;
    for (const box of boxes) {
      const isMarked = word !== "" && box.name.toLowerCase().includes(word);
      box.g.classList.toggle("marked", isMarked);
      // Boxes come by their left edge, callers first.
      if (isMarked && box.to > counted) {
        samples += box.to - Math.max(box.from, counted);
        counted = box.to;
      }
    }
    const share = (samples * 100 / Math.max(1, root.to)).toFixed(2);
    found.textContent = word === "" ? "" : `${share} % of the samples`;
  };
  const clear = () => {
    field.value = "";
    search("");
    zoom(root);
  };

  for (const box of boxes) box.g.addEventListener("click", () => zoom(box));
  field.addEventListener("input", () => search(field.value));
  reset.addEventListener("click", clear);
  addEventListener("keydown", event => { if (event.key === "Escape") clear(); });
  svg.querySelector(".controls").setAttribute("display", "inline");
}
