// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton serve`.

use std::process::ExitCode;

use clap::Parser as _;
use serve::options::Options;
use serve::service;

fn main() -> ExitCode {
    baton::program::run(|| service::run(Options::parse()).map(|()| 0))
}
