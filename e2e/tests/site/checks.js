// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs in a page of the site: reports what axe-core finds, and whether the page is as wide as its frame.

addEventListener("load", async () => {
  const page = location.pathname.split("/").pop();
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const width = innerWidth < 600 ? ", narrow" : "";
  const fits = document.documentElement.scrollWidth <= innerWidth ? "fits" : "is wider than its frame";
  let found;
  try {
    const { violations, passes } = await axe.run();
    found = violations.map(({ id, help, nodes }) =>
      `${id} (${help}): ${nodes.slice(0, 5).map(node => node.target.join(" ")).join(", ")}`);
    if (passes.length < 10) found.push(`only ${passes.length} rules have found something to check`);
  } catch (error) {
    found = [String(error)];
  }
  parent.postMessage(`${page}, ${scheme}${width}: ${fits}, ${found.join("; ") || "no violations"}`, "*");
});
