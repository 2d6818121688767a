// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands, a module for each.

use anyhow::Result;

use crate::args::{Cli, Command};

mod bench;
mod demo;
mod detach;
mod session;
mod up;

/// The exit status of a command that succeeded.
const DONE: u8 = 0;

/// Carries out a command; returns the process's exit status.
pub fn run(cli: Cli) -> Result<u8> {
    match cli.command {
        Command::Up(args) => up::run(&args),
        Command::Demo { config, lab } => demo::run(config, &lab),
        Command::Bench(args) => bench::run(&args),
        Command::Operator(command) => baton::commands::run(&cli.target, command),
    }
}
