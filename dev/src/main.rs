// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool of a checkout: `cargo baton …`.

use std::process::ExitCode;

use baton::program;
use clap::Parser as _;
use dev::args::Cli;
use dev::commands;

fn main() -> ExitCode {
    lab::bound::play().unwrap_or_else(|| program::run(|| commands::run(Cli::parse())))
}
