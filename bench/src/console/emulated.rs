// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines with a traced UART: Baton's, and one of stock Linux.

use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::trace::{self, Accesses};
use crate::Context;
use crate::direct::{self, Direct};
use crate::setup::{COUNT_INSTRUCTIONS, temporary_folder};

/// The last line that Baton prints from the logger itself: it reports the missing bundle.
const LAST_EARLY_OF_BATON: &str = "no bundle: ";
/// Baton's line once all is printed.
const OVER: &str = "storm: over";
/// Baton's line just before, with the figures.
const REPORT: &str = "printing: ";
/// From here on a program has the serial port open, and Linux has switched its FIFO on.
const LAST_EARLY_OF_LINUX: &str = "as init process";
/// A line of Linux's own behind that.
const END_OF_LINUX: &str = "---[ end Kernel panic";
/// Memory of either machine.
const MEMORY: &str = "512M";

/// The cost of printing in a run of Baton.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Printed {
    pub accesses: Accesses,
    /// Printed by the CPUs' loops, and what they spent on it. A nanosecond is an instruction.
    pub bytes: f64,
    pub spent_ns: f64,
    pub longest_off_accesses: f64,
    pub longest_off_ns: f64,
    /// Port accesses of a fill of the FIFO: a status read and its bytes.
    pub fill_accesses: f64,
}

/// Boots Baton, which logs its storm with this policy.
pub(super) fn baton(context: &Context, policy: &str) -> Result<Printed> {
    let options = format!("measure=log-storm console=ttyS0,115200n8,{policy}");
    let icount = COUNT_INSTRUCTIONS.map(OsStr::new);
    let (lines, accesses) = run(context, &context.image, &options, &icount, OVER, LAST_EARLY_OF_BATON)?;
    let report = lines
        .iter()
        .find_map(|line| line.split_once(REPORT))
        .context("Baton printed no line \"printing: …\": use an image of this release")?;
    let numbers: Vec<f64> =
        report.1.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    let &[bytes, _polls, _drops, spent_ns, longest_off_accesses, longest_off_ns, fill_accesses] = numbers.as_slice()
    else {
        bail!("Baton's line {:?} is not understood", report.1)
    };
    Ok(Printed { accesses, bytes, spent_ns, longest_off_accesses, longest_off_ns, fill_accesses })
}

/// Boots Linux with an early console and its own behind it; the agent has it panic, so that the kernel itself prints
/// once more.
pub(super) fn linux(context: &Context, kernel: &Path, initrd: &Path) -> Result<Accesses> {
    let options = "earlyprintk=serial,ttyS0,115200 console=ttyS0,115200n8 ignore_loglevel agent=panic";
    let initrd = ["-initrd".as_ref(), initrd.as_os_str()];
    Ok(run(context, kernel, options, &initrd, END_OF_LINUX, LAST_EARLY_OF_LINUX)?.1)
}

/// Boots a kernel until it prints `last`; returns its lines and its accesses to COM1.
fn run(
    context: &Context,
    kernel: &Path,
    options: &str,
    extra: &[&OsStr],
    last: &str,
    last_early: &str,
) -> Result<(Vec<String>, Accesses)> {
    let folder = temporary_folder()?;
    let trace = folder.path().join("trace");
    let mut command = direct::command(context, 1, MEMORY);
    command.arg("-kernel").arg(kernel).args(["-append", options]).args(extra);
    command.args(["-trace", "serial_read", "-trace", "serial_write", "-D"]).arg(&trace);
    let mut lines = Vec::new();
    Direct::start(context, command)?.wait(&format!("the line {last:?}"), |_, line| {
        lines.push(line.to_owned());
        line.contains(last).then_some(())
    })?;
    let file =
        File::open(&trace).context("the emulator wrote no trace: it is built without, name another with --qemu")?;
    Ok((lines, trace::read(BufReader::new(file), last_early)?))
}
