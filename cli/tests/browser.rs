// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline's page in a real browser: a script appended to it does what a person would, and writes down what it
//! sees.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton::timeline::{Picture, Run, Span, Track, page};

/// A browser on a crowded machine may take long; one that takes longer cannot run here.
const LIMIT: Duration = Duration::from_secs(90);
/// Script of the visitor at the browser. Each line of its output is a key and a value.
const VISITOR: &str = include_str!("browser/visitor.js");

fn span(name: &str, start_us: f64, length_us: f64) -> Span {
    Span { name: name.to_owned(), start_us, length_us, note: (name == "guest loaded").then(|| "load less".to_owned()) }
}

/// Two runs: one of two CPUs with a moment, one of twelve spans.
fn picture() -> Picture {
    let boot = vec![span("console", 0.0, 10.0), span("guest loaded", 20.0, 400.0), span("host ready", 15.0, 0.0)];
    let other = vec![span("wake-up", 5.0, 40.0)];
    let track = |name: &str, spans| Track { name: name.to_owned(), spans };
    let many = (0..12)
        .map(|number| span(&format!("step {number} </script>"), f64::from(number) * 50.0, f64::from(number) + 1.0));
    let runs = vec![
        Run { name: "boot".to_owned(), tracks: vec![track("CPU 0", boot), track("CPU 1", other)] },
        Run { name: "restart".to_owned(), tracks: vec![track("CPU 0", many.collect())] },
    ];
    Picture { title: "two runs".to_owned(), runs }
}

/// Returns whether the browser runs here at all: it is given a page with a script that cannot fail.
fn runs(browser: &Path, folder: &Path) -> bool {
    let page = "<!DOCTYPE html><body><script>document.body.append('run' + 'ning')</script></body>";
    visit(browser, folder, page).is_some_and(|document| document.contains("running"))
}

/// The document as the browser has it when all scripts have run; `None` where it was not shown in time.
fn visit(browser: &Path, folder: &Path, page: &str) -> Option<String> {
    let file = folder.join("page.html");
    fs::write(&file, page).expect("written");
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    command.arg("--virtual-time-budget=5000").arg("--dump-dom").arg(format!("file://{}", file.display()));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().ok()?;
    let mut output = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
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
        std::thread::sleep(Duration::from_millis(50));
    }
    reader.join().ok()
}

#[test]
fn the_page_shows_the_last_run_compares_zooms_and_names_the_longest_in_a_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(browser) = lab::browser::installed().filter(|browser| runs(browser, folder.path())) else {
        assert_ne!(std::env::var("STRICT").as_deref(), Ok("1"), "no Chromium runs here: the page cannot be checked");
        // Past the test harness's capture: the person who runs the tests is to know.
        let _ =
            writeln!(std::io::stderr(), "test: no Chromium runs here: the timeline's page is not checked in a browser");
        return;
    };
    // From here on anything missing is the fault of the page or its script.
    let page = format!("{}<script>{VISITOR}</script>", page::page(&picture(), page::Shown::Last).expect("a page"));
    let document = visit(&browser, folder.path(), &page).expect("the page is shown in time");
    let (_, rest) = document.split_once(r#"<pre id="seen">"#).expect("the visitor has written down what it saw");
    let (seen, _) = rest.split_once("</pre>").expect("all of it");
    let expected = "errors: none\n\
                    shown: restart: 562 µs\n\
                    on bars: step 11 &lt;/script&gt;  12 µs\n\
                    own scales: 2 true true\n\
                    legends: 4 12 guest loaded hsl\n\
                    runs: 2\n\
                    rows: 3 10\n\
                    first row: 400 µs guest loaded load less\n\
                    one scale: true\n\
                    moment: diamond\n\
                    tip: block guest loaded|400 µs from 20 µs on: 95.2 %|load less\n\
                    tip away: none\n\
                    zoomed in: true true\n\
                    moved: true\n\
                    all of it: true\n\
                    went there: 1 step 11 true\n";
    assert_eq!(seen.trim_start(), expected);
}
