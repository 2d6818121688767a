// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn span(name: &str, start_us: f64, length_us: f64) -> Span {
    Span { name: name.to_owned(), start_us, length_us, note: None }
}

fn run(name: &str) -> Run {
    let spans = vec![span("a", 0.0, 10.0), span("</script><b>", 10.0, 30.0), span("c", 40.0, 30.0)];
    Run { name: name.to_owned(), tracks: vec![Track { name: "track".to_owned(), spans }] }
}

#[test]
fn the_longest_come_first_and_of_equals_the_earlier() {
    let run = run("r");
    let names = |count| {
        run.longest(|track| track == "track", count).into_iter().map(|span| span.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(names(2), ["</script><b>", "c"]);
    assert_eq!(names(9).len(), 3);
    assert_eq!((run.longest(|_| false, 3).len(), run.end_us()), (0, 70.0));
}

#[test]
fn times_have_the_unit_that_suits_them() {
    assert_eq!([640.4, 12_540.0, 3_888_000.0].map(time), ["640 µs", "12.5 ms", "3.89 s"]);
}

#[test]
fn a_page_holds_every_run_and_no_span_can_leave_its_script() {
    let picture = Picture { title: "a <b> & c".to_owned(), runs: vec![run("one"), run("two")] };
    let page = page::page(&picture, page::Shown::Last).unwrap();
    assert!(page.contains("<title>a &lt;b&gt; &amp; c</title>"));
    assert!(!page.contains("</script><b>") && page.contains(r"\u003c/script>\u003cb>"));
    let (_, rest) = page.split_once(r#"type="application/json">"#).unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let read: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(read["runs"][1]["name"], "two");
    assert_eq!(read["runs"][0]["tracks"][0]["spans"][1]["name"], "</script><b>");
    assert!(!page.contains("{{"), "nothing is left to fill in");
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let page = page::page(&Picture { title: String::new(), runs: vec![run("one")] }, page::Shown::All).unwrap();
    for reference in ["src=", "href=", "url(", "import "] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn a_trace_has_a_process_for_each_run_and_complete_events() {
    let trace = chrome::trace(&Picture { title: "t".to_owned(), runs: vec![run("one"), run("two")] });
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 6);
    assert_eq!(events.iter().filter(|event| event["name"] == "process_name").count(), 2);
    let last = events.last().unwrap();
    assert_eq!((last["pid"].as_u64(), last["ts"].as_f64(), last["dur"].as_f64()), (Some(1), Some(40.0), Some(30.0)));
}
