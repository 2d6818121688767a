// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's tool.

use std::process::ExitCode;

use baton::args::Cli;
use baton::commands;
use clap::Parser as _;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("baton: {error:#}");
            ExitCode::FAILURE
        }
    }
}
