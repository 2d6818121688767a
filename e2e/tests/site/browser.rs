// SPDX-License-Identifier: MIT OR Apache-2.0
//! The site's pages in a real browser: axe-core checks them for people with disabilities, in both colour schemes.

use std::fs;
use std::path::Path;

use lab::checks::is_possible;

use crate::{rendered, root, texts};

/// Opens in one browser each page in a frame of the dark scheme, and in a narrow one of the light scheme.
const VISIT: &str = include_str!("visit.html");
/// The script that each page gets for the visit. It reports to the frame's outside.
const CHECKS: &str = include_str!("checks.js");
/// The pages that are visited: the front page with its picture, listings, tables, a page without headings.
const VISITED: [&str; 4] = ["guide.html", "index.html", "reference.html", "tutorial.html"];

/// A copy of the site for the visit: the pages with the script that checks them.
fn prepare(site: &Path, axe: &Path, folder: &Path) {
    fs::create_dir(folder.join("pictures")).expect("a folder");
    for name in fs::read_dir(site.join("pictures")).expect("pictures").flatten().map(|entry| entry.file_name()) {
        fs::copy(site.join("pictures").join(&name), folder.join("pictures").join(&name)).expect("copied");
    }
    fs::copy(site.join("style.css"), folder.join("style.css")).expect("copied");
    fs::copy(axe, folder.join("axe.min.js")).expect("copied");
    for (name, text) in texts(site, ".html") {
        let text = format!("{text}<script src=\"axe.min.js\"></script><script>{CHECKS}</script>");
        fs::write(folder.join(name), text).expect("written");
    }
    fs::write(folder.join("visit.html"), VISIT.replace("PAGES", &format!("{VISITED:?}"))).expect("written");
}

#[test]
fn pages_are_fit_for_people_with_disabilities_in_both_schemes_and_on_narrow_screens() {
    let Some(site) = rendered("site") else { return };
    let axe = root().join("target/axe-core/axe.min.js");
    if !is_possible(axe.is_file(), "no axe-core here: it does not check the guide's site") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let unchecked = "the guide's site is not checked in a browser";
    let Some(browser) = lab::browser::that_runs(folder.path(), unchecked) else { return };
    // From here on whatever is missing is the site's fault, or its script's.
    prepare(&site, &axe, folder.path());
    let document = lab::browser::visit(&browser, folder.path(), "visit.html").expect("the pages are shown");
    let seen = lab::browser::report(&document).expect("the visit is written down");
    let fit = |page: &str| format!("{page}, dark: fits, no violations\n{page}, light, narrow: fits, no violations\n");
    assert_eq!(seen, VISITED.map(fit).concat() + "end\n");
}
