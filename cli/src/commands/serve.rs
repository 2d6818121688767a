// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton serve`: a program of its own, since it contains an HTTP server and TLS, which the tool does not need.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::anyhow;

/// The program's name.
const PROGRAM: &str = "baton-serve";

/// Replaces this process by the program, which is beside this one, or else in the path. Returns why that failed.
pub(super) fn replace_by(arguments: &[OsString]) -> anyhow::Error {
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(arguments).exec();
    anyhow!("{} cannot be started: {error}; install it beside `baton` (cargo build --package serve)", program.display())
}
