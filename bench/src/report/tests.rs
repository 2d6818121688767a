// SPDX-License-Identifier: MIT OR Apache-2.0
use super::table::{number, runs_of};
use super::*;

static BENCH: Bench = Bench {
    name: "sample",
    about: "what a test needs",
    goals: &[Goal::at_most("time_ratio", 2.0, "ratio"), Goal::at_least("gain", 3.0, "ratio")],
    run: |_, _| Ok(()),
};

fn printed(style: Style, act: impl FnOnce(&mut Report<'_>)) -> (String, bool) {
    let mut out = Vec::new();
    let mut report = Report::new(&BENCH, style, &mut out);
    act(&mut report);
    let is_met = report.finish().expect("printed");
    (String::from_utf8(out).expect("text"), is_met)
}

fn sample(report: &mut Report<'_>) {
    let slow = Figure::measured("baton", "time", "ms", [3.0, 5.0, 4.0]);
    let quick = Figure::measured("direct", "time", "ms", [2.0, 2.0, 3.0]);
    let ratio = report.compared(slow, quick, "baton/direct", "time_ratio").expect("runs");
    report.goal("time_ratio", ratio).expect("known");
}

#[test]
fn json_has_a_line_per_figure_and_per_goal() {
    let (text, _) = printed(Style::Json, sample);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"bench":"sample","variant":"baton","metric":"time","unit":"ms","value":4,"runs":[3,5,4],"modelled":false}"#,
            r#"{"bench":"sample","variant":"direct","metric":"time","unit":"ms","value":2,"runs":[2,2,3],"modelled":false}"#,
            r#"{"bench":"sample","variant":"baton/direct","metric":"time_ratio","unit":"ratio","value":1.5,"runs":[1.5,2.5,1.333],"modelled":false}"#,
            r#"{"bench":"sample","goal":"time_ratio","value":1.5,"unit":"ratio","modelled":false}"#,
        ]
    );
}

#[test]
fn a_figure_of_a_model_is_marked() {
    let (text, _) = printed(Style::Json, |report| {
        let figure = Figure { is_modelled: true, ..Figure::measured("a", "b", "ms", [1.0]) };
        report.figure(figure).expect("a run");
    });
    assert!(text.trim_end().ends_with(r#""modelled":true}"#), "{text}");
}

#[test]
fn the_table_shows_which_goals_are_met() {
    let (text, is_met) = printed(Style::Table, |report| {
        sample(report);
        report.goal("gain", 2.5).expect("known");
    });
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).expect("a row").to_owned();
    assert!(row("time_ratio").contains("met") && row("time_ratio").contains("≤ 2"), "{text}");
    assert!(row("gain").contains("MISSED") && row("gain").contains("≥ 3"), "{text}");
    assert!(!is_met);
}

#[test]
fn a_goal_that_was_not_measured_is_not_met() {
    let (text, is_met) = printed(Style::Table, sample);
    assert!(text.contains("not measured") && !is_met, "{text}");
}

#[test]
fn goals_and_figures_that_cannot_be_are_refused() {
    printed(Style::Json, |report| {
        assert!(report.goal("speed", 1.0).is_err());
        assert!(report.figure(Figure::measured("a", "b", "ms", [])).is_err());
    });
}

#[test]
fn long_numbers_are_grouped() {
    assert_eq!([1234567.0, 999.0, -1234.5, 0.12345].map(number), ["1,234,567", "999", "-1,234.5", "0.123"]);
}

#[test]
fn many_runs_are_shown_by_their_range() {
    assert_eq!(runs_of(&[2.0, 1.5]), "2 1.5");
    let many: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(runs_of(&many), "1 to 100 (100 runs)");
}

#[test]
fn a_goal_that_is_left_out_is_not_missed() {
    let (text, is_met) = printed(Style::Table, |report| {
        sample(report);
        report.leave_out("gain").expect("known");
        assert!(report.leave_out("other").is_err());
    });
    assert!(is_met && text.contains("left out"), "{text}");
    let (text, _) = printed(Style::Json, |report| report.leave_out("gain").expect("known"));
    assert!(text.contains(r#""goal":"gain","left_out":true"#), "{text}");
}
