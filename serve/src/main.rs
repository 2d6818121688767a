// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton serve`.

use std::process::ExitCode;

use clap::Parser as _;
use serve::options::Options;
use serve::{ending, service};

fn main() -> ExitCode {
    baton::program::run(|| {
        let options = Options::parse();
        service::run(options, ending::first_signal()?).map(|()| 0)
    })
}
