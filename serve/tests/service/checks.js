// SPDX-License-Identifier: MIT OR Apache-2.0
// axe-core over the service's page: in the light and in the dark scheme, each time with what is open at that moment.

// The page's scheme is that of the frame around it.
async function scheme(name) {
  page.style.colorScheme = name;
  await until(`the ${name} scheme`, () => page.contentWindow.matchMedia(`(prefers-color-scheme: ${name})`).matches);
}

// Loads axe-core into the page; false if this machine has none. The timeline's page loads nothing: it takes the text.
async function hasAxe() {
  const d = page.contentDocument, script = d.createElement("script");
  const isInline = page.contentWindow.location.pathname !== "/";
  if (isInline) script.textContent = await (await fetch("/axe.js")).text(); else script.src = "/axe.js";
  const loaded = new Promise(resolve => { script.onload = script.onerror = resolve; });
  d.head.append(script);
  if (!isInline) await loaded;
  return Boolean(page.contentWindow.axe);
}

// Reports each violation with the elements that it is about.
async function axe(state) {
  if (!page.contentWindow.axe && !await hasAxe()) return seen.push(`axe, ${state}: not here`);
  const found = [];
  for (const name of ["light", "dark"]) {
    await scheme(name);
    const { violations, passes } = await page.contentWindow.axe.run(page.contentDocument);
    if (passes.length < 10) found.push(`${name}: only ${passes.length} rules have found something to check`);
    for (const { id, help, nodes } of violations) {
      found.push(`${name}: ${id} (${help}): ${nodes.map(node => node.target.join(" ")).join(", ")}`);
    }
  }
  await scheme("light");
  seen.push(`axe, ${state}: ${found.join("; ") || "no violations"}`);
}
