// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton completions` and `baton man`: made from the same command line that the tool reads.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::DONE;
use crate::args::Cli;
use crate::output::output;

/// The program's name where a shell completes it.
const PROGRAM: &str = "baton";

/// Prints the script by which a shell completes the tool's commands and options.
pub(super) fn completions(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), PROGRAM, &mut script);
    output().write_all(&script)?;
    Ok(DONE)
}

/// Writes a manual page for each command to a folder, which is made if it is not there.
pub(super) fn manual(folder: &Path) -> Result<u8> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), folder)
        .with_context(|| format!("{}: a manual page cannot be written", folder.display()))?;
    println!("{}: see `man -l {}`", folder.display(), folder.join("baton.1").display());
    Ok(DONE)
}
