// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of a bench: JSON, one object per line, or a table for people.
//!
//! ```text
//! {"bench":"exits","variant":"icount","metric":"cpuid","unit":"instructions","value":310,"runs":[310,310],"modelled":false}
//! {"bench":"exits","goal":"cpuid_exit_instructions","value":310,"unit":"instructions","modelled":false}
//! ```
//!
//! JSON lines appear as they are found; the table needs all of them first.

use std::io::Write;

use anyhow::{Context as _, Result};
use serde::{Serialize, Serializer};

use super::Bench;
use super::statistics::{median, ratios, rounded};

mod table;
#[cfg(test)]
mod tests;

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A table when the bench is done.
    Table,
    /// JSON, one object per line.
    Json,
}

/// Good side of a goal's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The value may be as high as the limit.
    AtMost,
    /// The value may be as low as the limit.
    AtLeast,
}

/// A limit for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Its name, unique among all benches.
    pub id: &'static str,
    /// The limit, in `unit`.
    pub limit: f64,
    /// The good side.
    pub direction: Direction,
    /// Of value and limit.
    pub unit: &'static str,
}

impl Goal {
    /// A goal that wants `limit` or less.
    pub const fn at_most(id: &'static str, limit: f64, unit: &'static str) -> Self {
        Self { id, limit, direction: Direction::AtMost, unit }
    }

    /// A goal that wants `limit` or more.
    pub const fn at_least(id: &'static str, limit: f64, unit: &'static str) -> Self {
        Self { id, limit, direction: Direction::AtLeast, unit }
    }

    /// Returns whether a value meets it.
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.direction {
            Direction::AtMost => value <= self.limit,
            Direction::AtLeast => value >= self.limit,
        }
    }
}

/// One measured quantity of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The variant that was measured ("baton 6.12").
    pub variant: String,
    /// The quantity that was measured.
    pub metric: String,
    /// The unit.
    pub unit: &'static str,
    /// One value per run; the figure is their median.
    pub runs: Vec<f64>,
    /// True if a model computed it.
    pub is_modelled: bool,
}

impl Figure {
    /// A quantity that was measured.
    pub fn measured(
        variant: impl Into<String>,
        metric: impl Into<String>,
        unit: &'static str,
        runs: impl Into<Vec<f64>>,
    ) -> Self {
        Self { variant: variant.into(), metric: metric.into(), unit, runs: runs.into(), is_modelled: false }
    }

    /// A quantity that a model computed.
    pub fn modelled(
        variant: impl Into<String>,
        metric: impl Into<String>,
        unit: &'static str,
        runs: impl Into<Vec<f64>>,
    ) -> Self {
        Self { is_modelled: true, ..Self::measured(variant, metric, unit, runs) }
    }
}

/// A goal and the value that was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reached {
    goal: Goal,
    value: f64,
    is_modelled: bool,
}

/// Collects the figures of one bench and prints them.
pub struct Report<'o> {
    bench: &'static Bench,
    style: Style,
    out: &'o mut dyn Write,
    figures: Vec<(Figure, f64)>,
    reached: Vec<Reached>,
    left_out: Vec<Goal>,
}

impl<'o> Report<'o> {
    /// An empty report.
    pub fn new(bench: &'static Bench, style: Style, out: &'o mut dyn Write) -> Self {
        Self { bench, style, out, figures: Vec::new(), reached: Vec::new(), left_out: Vec::new() }
    }

    /// Adds a figure; returns its value, the median of its runs.
    pub fn figure(&mut self, figure: Figure) -> Result<f64> {
        let value = median(&figure.runs)
            .with_context(|| format!("{}: {} of {} has no runs", self.bench.name, figure.metric, figure.variant))?;
        if self.style == Style::Json {
            self.line(&FigureLine {
                bench: self.bench.name,
                variant: &figure.variant,
                metric: &figure.metric,
                unit: figure.unit,
                value: Number(value),
                runs: figure.runs.iter().copied().map(Number).collect(),
                modelled: figure.is_modelled,
            })?;
        }
        self.figures.push((figure, value));
        Ok(value)
    }

    /// Adds two figures of one metric and their ratio, run by run, under `name`; returns the ratio's median.
    pub fn compared(&mut self, numerator: Figure, denominator: Figure, variant: &str, name: &str) -> Result<f64> {
        let mut ratio = Figure::measured(variant, name, "ratio", ratios(&numerator.runs, &denominator.runs));
        ratio.is_modelled = numerator.is_modelled || denominator.is_modelled;
        self.figure(numerator)?;
        self.figure(denominator)?;
        self.figure(ratio)
    }

    /// Compares a measured value with the goal called `id`.
    pub fn goal(&mut self, id: &str, value: f64) -> Result<()> {
        self.hold(id, value, false)
    }

    /// Compares a value that a model computed with the goal called `id`.
    pub fn modelled_goal(&mut self, id: &str, value: f64) -> Result<()> {
        self.hold(id, value, true)
    }

    /// Leaves the goal called `id` out: this machine, this run or the bench so far has not the means to measure it.
    pub fn leave_out(&mut self, id: &str) -> Result<()> {
        let goal = self.goal_called(id)?;
        self.left_out.push(goal);
        if self.style == Style::Json {
            self.line(&LeftOutLine { bench: self.bench.name, goal: goal.id, is_left_out: true })?;
        }
        Ok(())
    }

    fn goal_called(&self, id: &str) -> Result<Goal> {
        let goal = self.bench.goals.iter().find(|goal| goal.id == id).copied();
        goal.with_context(|| format!("the bench {} has no goal {id:?}", self.bench.name))
    }

    fn hold(&mut self, id: &str, value: f64, is_modelled: bool) -> Result<()> {
        let goal = self.goal_called(id)?;
        let reached = Reached { goal, value, is_modelled };
        if self.style == Style::Json {
            let (bench, value, modelled) = (self.bench.name, Number(value), reached.is_modelled);
            self.line(&GoalLine { bench, goal: goal.id, value, unit: goal.unit, modelled })?;
        }
        self.reached.push(reached);
        Ok(())
    }

    /// Prints the table, if that is the format. Returns whether every goal that was not left out was measured and met.
    pub fn finish(self) -> Result<bool> {
        if self.style == Style::Table {
            writeln!(self.out, "{}", table::text(self.bench, &self.figures, &self.reached, &self.left_out))?;
        }
        let is_met = |goal: &Goal| self.reached.iter().any(|reached| reached.goal == *goal && reached.is_met());
        Ok(self.bench.goals.iter().all(|goal| self.left_out.contains(goal) || is_met(goal)))
    }

    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        writeln!(self.out, "{}", serde_json::to_string(line)?)?;
        self.out.flush()?;
        Ok(())
    }
}

impl Reached {
    fn is_met(&self) -> bool {
        self.goal.is_met_by(self.value)
    }
}

#[derive(Serialize)]
struct FigureLine<'a> {
    bench: &'a str,
    variant: &'a str,
    metric: &'a str,
    unit: &'a str,
    value: Number,
    runs: Vec<Number>,
    modelled: bool,
}

#[derive(Serialize)]
struct GoalLine<'a> {
    bench: &'a str,
    goal: &'a str,
    value: Number,
    unit: &'a str,
    modelled: bool,
}

#[derive(Serialize)]
struct LeftOutLine<'a> {
    bench: &'a str,
    goal: &'a str,
    #[serde(rename = "left_out")]
    is_left_out: bool,
}

/// A number to three decimals; a whole one is written without any.
#[derive(Clone, Copy)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
        let value = rounded(self.0);
        if value.fract() == 0.0 && value.abs() < EXACT {
            serializer.serialize_i64(value as i64)
        } else {
            serializer.serialize_f64(value)
        }
    }
}
