// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn span(name: &str, start_us: f64, length_us: f64) -> Span {
    Span { name: name.to_owned(), start_us, length_us, note: None }
}

#[test]
fn bars_lie_where_their_spans_do() {
    let spans = vec![
        span("first", 0.0, 500.0),
        span("a name that is longer than its column", 500.0, 500.0),
        span("short", 999.0, 1.0),
        span("now", 500.0, 0.0),
    ];
    let noted = Span { note: Some("do less".to_owned()), ..span("first", 0.0, 500.0) };
    let tracks = vec![Track { name: "t".to_owned(), spans }, Track { name: "l".to_owned(), spans: vec![noted] }];
    let view = View { draws: |track| track == "t", lists: |track| track == "l", listed: "l" };
    let drawn = draw(&Run { name: "log".to_owned(), tracks }, view);
    let lines: Vec<&str> = drawn.lines().collect();
    assert_eq!(lines[0], "log: 1.0 ms");
    assert_eq!(lines[1], format!("{:<28} {:>9} │{}", "first", "500 µs", "█".repeat(24)));
    assert_eq!(
        lines[2],
        format!("{:<28} {:>9} │{}{}", "a name that is longer than …", "500 µs", " ".repeat(24), "█".repeat(24))
    );
    assert_eq!(lines[3], format!("{:<28} {:>9} │{}◆", "now", "", " ".repeat(24)));
    assert_eq!(lines[5..], ["the 1 longest of l:", " 1.    500 µs 50.0 %  first", "                       ▸ do less"]);
}
