// SPDX-License-Identifier: MIT OR Apache-2.0
//! `structure`: how well the sources are parted and tested; no machine is started.
//!
//! Imports, cycles and lengths of files are read from the sources ([`layers`], [`modules`], [`files`]). End-to-end
//! tests hold the same rules by the same code. Two figures show how well host tests cover the protocol of an update:
//! the lines that they execute (`coverage`, not with `--quick`), and the changes to it that they notice (`mutants`,
//! only with `--all`).

use std::fs;

use anyhow::Result;

use super::report::{Figure, Goal, Report};
use super::{Bench, Context, size};

mod coverage;
pub mod files;
pub mod layers;
pub mod modules;
mod mutants;

/// The package that is the protocol of updates and restarts.
const PROTOCOL: &str = "update";
/// Its folder.
const PROTOCOL_FOLDER: &str = "crates/update";

const HOST_TESTED: &str = "update_logic_host_tested";
const MUTANTS_CAUGHT: &str = "update_mutants_caught";

pub(super) static BENCH: Bench = Bench {
    name: "structure",
    about: "imports between layers and modules, lengths of files, and how well an update's logic is tested",
    goals: &[
        Goal::at_most("upward_module_imports", 0.0, "imports"),
        size::IMAGE_BYTES,
        Goal::at_most("files_over_300_lines", 0.0, "files"),
        Goal::at_least(HOST_TESTED, 0.95, "ratio"),
        Goal::at_least(MUTANTS_CAUGHT, 0.9, "ratio"),
    ],
    run,
};

/// A share, or the reason for which it is not known here.
#[derive(Debug, PartialEq)]
enum Found {
    /// So many of so many.
    Share {
        part: usize,
        whole: usize,
    },
    LeftOut(String),
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("structure: reading the sources");
    imports(context, report)?;
    image(context, report)?;
    lengths(context, report)?;
    let tested = if context.sizes.quick { left_out("--quick builds nothing") } else { coverage::measure(context)? };
    share(context, report, HOST_TESTED, ["lines executed", "lines"], tested)?;
    share(context, report, MUTANTS_CAUGHT, ["mutants caught", "mutants"], mutants::measure(context)?)
}

fn left_out(reason: impl Into<String>) -> Found {
    Found::LeftOut(reason.into())
}

fn imports(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let upward = layers::upward_imports(&context.root)?;
    upward.iter().for_each(|import| context.note(&format!("upward import: {import}")));
    report.figure(Figure::measured("hypervisor", "upward_imports", "imports", [upward.len() as f64]))?;
    report.goal("upward_module_imports", upward.len() as f64)?;
    let (mut in_image, mut in_crates) = (0, 0);
    for folder in modules::crates(&context.root)? {
        let cycles = modules::cycles_of(&context.root.join(&folder))?.len();
        *(if folder == modules::IMAGE { &mut in_image } else { &mut in_crates }) += cycles;
    }
    for (variant, cycles) in [("hypervisor", in_image), ("crates", in_crates)] {
        report.figure(Figure::measured(variant, "import_cycles", "cycles", [cycles as f64]))?;
    }
    Ok(())
}

/// The file alone; `size` also asks a host that runs.
fn image(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let bytes = fs::metadata(&context.image)?.len();
    let bytes = report.figure(Figure::measured("baton", "image_file", "bytes", [bytes as f64]))?;
    report.goal(size::IMAGE_BYTES.id, bytes)
}

fn lengths(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let long = files::long_files(&context.root)?;
    long.iter().for_each(|(file, lines)| context.note(&format!("{lines} lines: {}", file.display())));
    report.figure(Figure::measured("sources", "files_over_300_lines", "files", [long.len() as f64]))?;
    report.goal("files_over_300_lines", long.len() as f64)
}

/// Reports the two numbers of a share by their names, the second of which is their unit, and compares it with a goal.
fn share(
    context: &Context,
    report: &mut Report<'_>,
    goal: &str,
    [of_part, unit]: [&'static str; 2],
    found: Found,
) -> Result<()> {
    match found {
        Found::Share { part, whole } => {
            report.figure(Figure::measured(PROTOCOL, of_part, unit, [part as f64]))?;
            report.figure(Figure::measured(PROTOCOL, unit, unit, [whole as f64]))?;
            report.goal(goal, part as f64 / whole.max(1) as f64)
        }
        Found::LeftOut(reason) => {
            context.note(&format!("left out: {goal}: {reason}"));
            report.leave_out(goal)
        }
    }
}
