// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bench's figures and goals as tables for people.

use comfy_table::{CellAlignment, Table, presets};

use super::{Bench, Direction, Figure, Goal, Reached};
use crate::statistics::rounded;

/// The number of runs up to which each is shown.
const MOST_RUNS: usize = 10;

/// Formats all figures and goals of a bench.
pub(super) fn text(bench: &Bench, figures: &[(Figure, f64)], reached: &[Reached], left_out: &[Goal]) -> String {
    let goals = goal_table(bench, reached, left_out);
    format!("{}: {}\n{}\n\n{goals}\n", bench.name, bench.about, figure_table(figures))
}

fn figure_table(figures: &[(Figure, f64)]) -> Table {
    let mut table = table(["VARIANT", "METRIC", "VALUE", "UNIT", "RUNS"]);
    for (figure, value) in figures {
        let note = if figure.is_modelled { " (modelled)" } else { "" };
        table.add_row([
            figure.variant.clone(),
            figure.metric.clone(),
            number(*value),
            format!("{}{note}", figure.unit),
            runs_of(&figure.runs),
        ]);
    }
    align_right(&mut table, 2);
    table
}

/// Formats each run, or their range if a line has no room for them.
pub(super) fn runs_of(runs: &[f64]) -> String {
    if runs.len() <= MOST_RUNS {
        return runs.iter().copied().map(number).collect::<Vec<_>>().join(" ");
    }
    let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} to {} ({} runs)", number(least), number(most), runs.len())
}

fn goal_table(bench: &Bench, reached: &[Reached], left_out: &[Goal]) -> Table {
    let mut table = table(["GOAL", "VALUE", "LIMIT", "UNIT", ""]);
    for goal in bench.goals {
        let limit = match goal.direction {
            Direction::AtMost => format!("≤ {}", number(goal.limit)),
            Direction::AtLeast => format!("≥ {}", number(goal.limit)),
        };
        let found = reached.iter().find(|reached| reached.goal == *goal);
        let (value, verdict) = match found {
            Some(reached) if reached.is_met() => (number(reached.value), "met"),
            Some(reached) => (number(reached.value), "MISSED"),
            None if left_out.contains(goal) => (String::new(), "left out"),
            None => (String::new(), "not measured"),
        };
        table.add_row([goal.id.to_owned(), value, limit, goal.unit.to_owned(), verdict.to_owned()]);
    }
    align_right(&mut table, 1);
    align_right(&mut table, 2);
    table
}

fn table(header: [&str; 5]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

fn align_right(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Three decimals at most, and groups of three digits where the number is long.
pub(super) fn number(value: f64) -> String {
    let text = rounded(value).to_string();
    let (whole, fraction) = text.split_once('.').map_or((&*text, None), |(whole, fraction)| (whole, Some(fraction)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    format!("{sign}{grouped}{fraction}")
}
