// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool from its operator's view: the real program, with this test program in the emulator's place.
//!
//! Started with an emulator's arguments it speaks like a host over the control socket ([`emulator`]); started otherwise
//! it runs the tests.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

mod emulator;
mod hosts;
mod lines;
mod operator;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "-nodefaults") {
        return emulator::run();
    }
    let trials = hosts::RULES.iter().chain(lines::RULES).map(|(name, rule)| {
        Trial::test(*name, || {
            rule();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
