// SPDX-License-Identifier: MIT OR Apache-2.0
//! The site's pages in a real browser: axe-core checks them for people with disabilities, in both colour schemes.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{is_possible, rendered, report, root, texts};

/// A browser on a crowded machine may take long; one that takes longer cannot run here.
const LIMIT: Duration = Duration::from_secs(90);
/// Opens in one browser each page in a frame of the dark scheme, and in a narrow one of the light scheme.
const VISIT: &str = include_str!("visit.html");
/// The script that each page gets for the visit. It reports to the frame's outside.
const CHECKS: &str = include_str!("checks.js");
/// The pages that are visited: the front page with its picture, listings, tables, a page without headings.
const VISITED: [&str; 4] = ["guide.html", "index.html", "reference.html", "tutorial.html"];

/// The document as the browser has it when all scripts have run; `None` where it was not shown in time.
fn visit(browser: &Path, folder: &Path, page: &str) -> Option<String> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg("--virtual-time-budget=20000").arg("--dump-dom");
    command.arg(format!("file://{}", folder.join(page).display()));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().ok()?;
    let mut output = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = output.read_to_string(&mut text);
        text
    });
    let started = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(50));
    }
    reader.join().ok()
}

/// Returns whether the browser runs here at all, seen by a page whose script cannot fail.
fn runs(browser: &Path, folder: &Path) -> bool {
    let page = "<!DOCTYPE html><body><script>document.body.append('run' + 'ning')</script></body>";
    fs::write(folder.join("runs.html"), page).expect("written");
    visit(browser, folder, "runs.html").is_some_and(|document| document.contains("running"))
}

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
    let Some(browser) = lab::browser::installed().filter(|browser| runs(browser, folder.path())) else {
        return report("no Chromium runs here: the guide's site is not checked in a browser");
    };
    // From here on whatever is missing is the site's fault, or its script's.
    prepare(&site, &axe, folder.path());
    let document = visit(&browser, folder.path(), "visit.html").expect("the pages are shown");
    let (_, rest) = document.split_once(r#"<pre id="seen">"#).expect("the visit is written down");
    let (seen, _) = rest.split_once("</pre>").expect("all of it");
    let fit = |page: &str| format!("{page}, dark: fits, no violations\n{page}, light, narrow: fits, no violations\n");
    assert_eq!(seen, VISITED.map(fit).concat() + "end\n");
}
