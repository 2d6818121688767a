// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's tool.

use std::process::ExitCode;

use baton::args::Cli;
use baton::{commands, program};
use clap::Parser as _;

fn main() -> ExitCode {
    program::run(|| {
        let cli = Cli::parse();
        commands::run(&cli.target, cli.command)
    })
}
