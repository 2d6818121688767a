// SPDX-License-Identifier: MIT OR Apache-2.0
//! The browser that opens pages for tests and benches.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::checks::is_possible;

/// Chromium under the names that distributions give it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Returns the browser: the one that `BATON_BROWSER` names, or the first of Chromium's names in the path.
pub fn installed() -> Option<PathBuf> {
    let named = env::var_os("BATON_BROWSER").map(PathBuf::from);
    let folders: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let found = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    named.into_iter().chain(found).find(|path| path.is_file())
}

/// A browser on a crowded machine may take long; one that takes longer cannot run here.
const LIMIT: Duration = Duration::from_secs(90);

/// Returns the browser, if it runs here. `unchecked` names what is left out otherwise.
///
/// # Panics
///
/// None runs, and `STRICT=1` is set.
pub fn that_runs(folder: &Path, unchecked: &str) -> Option<PathBuf> {
    let browser = installed().filter(|browser| runs(browser, folder));
    is_possible(browser.is_some(), &format!("no Chromium runs here: {unchecked}"));
    browser
}

/// Returns whether the browser runs here at all: a page whose script cannot fail, in this folder, shows that.
fn runs(browser: &Path, folder: &Path) -> bool {
    let page = "<!DOCTYPE html><body><script>document.body.append('run' + 'ning')</script></body>";
    fs::write(folder.join("runs.html"), page).is_ok()
        && visit(browser, folder, "runs.html").is_some_and(|document| document.contains("running"))
}

/// Opens a file of this folder. Returns the document as the browser has it when all scripts have run; `None` where it
/// was not shown in time.
pub fn visit(browser: &Path, folder: &Path, file: &str) -> Option<String> {
    let mut command = headless(browser, folder);
    command.arg("--virtual-time-budget=20000").arg("--dump-dom");
    command.arg(format!("file://{}", folder.join(file).display()));
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let mut output = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = output.read_to_string(&mut text);
        text
    });
    ends(child)?;
    reader.join().ok()
}

/// Takes a picture of the page at this address, as it is when all of it is loaded: a PNG. `None` where that took too
/// long.
pub fn picture(browser: &Path, folder: &Path, address: &str, to: &Path) -> Option<Vec<u8>> {
    let mut command = headless(browser, &folder.join("picture"));
    command.args(["--hide-scrollbars", "--window-size=1280,1600"]);
    command.arg(format!("--screenshot={}", to.display())).arg(address);
    ends(command.stdout(Stdio::null()).spawn().ok()?)?;
    fs::read(to).ok()
}

/// Waits for the browser's end; `None` where it has to be ended.
fn ends(mut child: Child) -> Option<()> {
    let started = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        thread::sleep(Duration::from_millis(50));
    }
    Some(())
}

/// A browser that stays on its page, until this is dropped.
#[derive(Debug)]
pub struct Open(Child);

impl Open {
    /// Opens an address.
    ///
    /// # Errors
    ///
    /// The browser cannot be started.
    pub fn at(browser: &Path, folder: &Path, address: &str) -> io::Result<Self> {
        // With a port for debuggers it stays when the page is loaded.
        headless(browser, folder).arg("--remote-debugging-port=0").arg(address).stdout(Stdio::null()).spawn().map(Self)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn headless(browser: &Path, folder: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.stderr(Stdio::null()).stdin(Stdio::null());
    command
}

/// Returns the visitor's report in a document: the text of the element `seen`.
pub fn report(document: &str) -> Option<&str> {
    let (_, rest) = document.split_once(r#"<pre id="seen">"#)?;
    rest.split_once("</pre>").map(|(seen, _)| seen)
}
