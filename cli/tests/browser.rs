// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timeline's page and the flame graph in a real browser: a script appended to each does what a person would, and
//! writes down what it sees.

use std::fs;

use baton::profile::{Stack, Stacks, draw};
use baton::timeline::{Picture, Run, Span, Track, page};

/// The line for a machine without a browser.
const UNCHECKED: &str = "the tool's pages are not checked in a browser";
/// Script of the visitor at the browser. Each line of its output is a key and a value.
const VISITOR: &str = include_str!("browser/visitor.js");
/// The same at a flame graph.
const FLAME_VISITOR: &str = include_str!("browser/flame_visitor.js");

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

#[test]
fn the_page_shows_the_last_run_compares_zooms_and_names_the_longest_in_a_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(browser) = lab::browser::that_runs(folder.path(), UNCHECKED) else { return };
    // From here on anything missing is the fault of the page or its script.
    let page = format!("{}<script>{VISITOR}</script>", page::page(&picture(), page::Shown::Last).expect("a page"));
    fs::write(folder.path().join("page.html"), page).expect("written");
    let document = lab::browser::visit(&browser, folder.path(), "page.html").expect("the page is shown in time");
    let seen = lab::browser::report(&document).expect("the visitor has written down what it saw");
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

#[test]
fn the_flame_graph_zooms_and_searches_in_a_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(browser) = lab::browser::that_runs(folder.path(), UNCHECKED) else { return };
    let stack =
        |frames: &[&str], samples| Stack { frames: frames.iter().map(|&frame| frame.to_owned()).collect(), samples };
    let stacks = Stacks(vec![
        stack(&["guest a"], 50_000),
        stack(&["run"], 5_000),
        stack(&["run", "exit<T>"], 15_000),
        stack(&["run", "exit<T>", "exit_late"], 1),
        stack(&["run", "print"], 29_999),
    ]);
    let svg = draw(&stacks, "a profile");
    let end = format!("<script><![CDATA[{FLAME_VISITOR}]]></script></svg>");
    fs::write(folder.path().join("baton.svg"), svg.replace("</svg>", &end)).expect("written");
    let document = lab::browser::visit(&browser, folder.path(), "baton.svg").expect("the picture is shown in time");
    let (_, rest) = document.split_once(r#"<text id="seen">"#).expect("the visitor has written down what it saw");
    let (seen, _) = rest.split_once("</text>").expect("all of it");
    let expected = "errors: none\n\
                    at first: all 1200, guest a 600, run 600, exit&lt;T&gt; 180, print 360\n\
                    zoomed: all 1200 pale, run 1200, exit&lt;T&gt; 360, print 720\n\
                    label: exit&lt;T&gt;\n\
                    deeper: all 1200 pale, run 1200 pale, exit&lt;T&gt; 1200 pale, exit_late 1200\n\
                    marked: exit&lt;T&gt;, exit_late: 15.00 % of the samples\n\
                    reset: 5 shown, 0 marked, field empty\n\
                    escape: 5 shown\n";
    assert_eq!(seen, expected);
}
