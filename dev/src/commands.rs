// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each command does.

use anyhow::Result;

use crate::args::Command;

mod bench;
mod demo;
mod detach;
mod emulator;
mod session;
mod up;

/// Status of a command that did what it should.
const DONE: u8 = 0;

/// Carries out a command; returns the process's exit status.
pub fn run(command: Command) -> Result<u8> {
    match command {
        Command::Up(args) => up::run(&args),
        Command::Demo { config, lab } => demo::run(config, &lab),
        Command::Emulator { with, command } => emulator::run(with, &command),
        Command::Bench(args) => bench::run(&args),
        Command::Operator(command) => baton::commands::run(command),
    }
}
