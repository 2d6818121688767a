// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profile that a guest of `guests/perf` prints.

/// The program's functions, and their shares of its work.
const FUNCTIONS: [(&str, f64); 3] = [("half", 0.5), ("third", 0.3), ("fifth", 0.2)];

/// One guest's profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Profile {
    /// The largest distance of a function's share of the samples from its share of the work.
    pub share_error: f64,
    /// Samples, of those that follow from the cycles that were counted.
    pub samples_share: f64,
    /// By how much less is computed in a second than without perf, where that was tried.
    pub overhead: Option<f64>,
    /// Cycles that were counted for each round of the program's.
    pub cycles_per_round: f64,
}

impl Profile {
    /// Reads the guest's lines; `None` if one is missing.
    pub fn read(lines: &[String]) -> Option<Self> {
        let (bare, record) = (of_task(lines, "bare"), of_task(lines, "record"));
        let counts = record.iter().find(|line| line.starts_with("period "))?;
        let count = |name: &str| {
            let mut words = counts.split(' ').skip_while(|word| *word != name);
            words.nth(1)?.parse::<f64>().ok()
        };
        let cycles = record.iter().find_map(|line| cycles_in(line))?;
        let met = FUNCTIONS.iter().map(|(name, _)| count(name)).collect::<Option<Vec<f64>>>()?;
        let all: f64 = met.iter().sum();
        let errors = FUNCTIONS.iter().zip(&met).map(|((_, share), met)| (met / all - share).abs());
        let rate = |lines: &[&str]| Some(field(lines, "rounds")? / field(lines, "ms")?);
        let recorded = rate(&record)?;
        Some(Self {
            share_error: errors.fold(0.0, f64::max),
            samples_share: count("samples")? / (cycles / count("period")?),
            overhead: rate(&bare).map(|bare| 1.0 - recorded / bare),
            cycles_per_round: cycles / field(&record, "rounds")?,
        })
    }
}

/// Returns the rest of lines that begin with `perf: TASK: `.
fn of_task<'l>(lines: &'l [String], task: &str) -> Vec<&'l str> {
    let prefix = format!("perf: {task}: ");
    lines.iter().filter_map(|line| line.trim().strip_prefix(&*prefix)).collect()
}

/// A field of the program's own line.
fn field(lines: &[&str], name: &str) -> Option<f64> {
    let line = lines.iter().find_map(|line| line.strip_prefix("shares: "))?;
    line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

fn cycles_in(line: &str) -> Option<f64> {
    let (number, unit) = line.trim().split_once(' ')?;
    let is_it = unit.trim_start().starts_with("cycles");
    if is_it { number.replace(',', "").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        "perf: bare: shares: half=0.5000 third=0.3000 fifth=0.2000 rounds=1000 ms=1000",
        "perf: record: shares: half=0.5100 third=0.3000 fifth=0.1900 rounds=990 ms=1000",
        "perf: record:         1,980,000,000      cycles                                ",
        "perf: record: period 1000000 samples 1970 half 1000 third 600 fifth 350",
    ];

    fn read(lines: &[&str]) -> Option<Profile> {
        Profile::read(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_profile_is_held_against_the_work_that_is_done() {
        let profile = read(&LINES).expect("all is there");
        // A fifth of 1950 is 390.
        assert!((profile.share_error - 40.0 / 1950.0).abs() < 1e-9, "{profile:?}");
        assert!((profile.samples_share - 1970.0 / 1980.0).abs() < 1e-9);
        assert!((profile.cycles_per_round - 2e6).abs() < 1e-9);
        assert!((profile.overhead.expect("both ran") - 0.01).abs() < 1e-9);
    }

    #[test]
    fn without_the_program_alone_there_is_no_overhead() {
        assert_eq!(read(&LINES[1..]).expect("all is there").overhead, None);
    }

    #[test]
    fn a_line_that_is_missing_is_none() {
        for missing in 1..LINES.len() {
            let lines: Vec<&str> = LINES.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, l)| *l).collect();
            assert_eq!(read(&lines), None, "without line {missing}");
        }
    }
}
