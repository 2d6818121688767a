// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulators that the kernel ends with the process that started them, however that ends. A process that is killed
//! cannot end anything itself, and a watcher beside the two would have to outlive both.
//!
//! ```text
//! PROGRAM ── fork, exec ──► PROGRAM emulator --with PID -- EMULATOR ARGUMENTS…: prctl(PR_SET_PDEATHSIG)
//!                                     └── exec ──► EMULATOR ARGUMENTS…, which keeps the signal
//! ```
//!
//! The program itself stands in between, since code between fork and exec would be `unsafe`. The signal comes when the
//! thread ends that started the emulator, so that thread has to outlive it.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::start::explain;

/// The words before the process id, and the one behind it.
const BECOME: [&str; 2] = ["emulator", "--with"];
const SEPARATOR: &str = "--";

/// This program, once it has declared that it can become an emulator. A static, since it is a fact about the program:
/// tests of libraries have no `main` of their own, and start their emulators unbound.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Becomes an emulator if the command line orders that; else binds all emulators that this process starts to it. The
/// first call in the `main` of every program that starts some.
pub fn play() -> Option<ExitCode> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let Some((parent, command)) = parse(&arguments) else {
        if let Ok(program) = env::current_exe() {
            let _ = PROGRAM.set(program);
        }
        return None;
    };
    let Err(error) = become_emulator(parent, command);
    eprintln!("{error:#}");
    Some(ExitCode::FAILURE)
}

/// Returns the command that starts `command` bound to this process, in a group of its own, so that Ctrl-C reaches this
/// process only. Its environment and its folder are this process's.
pub fn bound(command: Command) -> Command {
    let Some(program) = PROGRAM.get() else { return command };
    let mut bound = Command::new(program);
    bound.process_group(0).args(BECOME).arg(std::process::id().to_string()).arg(SEPARATOR);
    bound.arg(command.get_program()).args(command.get_args());
    bound
}

/// Returns the process to end with, and the emulator's command.
fn parse(arguments: &[OsString]) -> Option<(u32, &[OsString])> {
    let [emulator, with, parent, separator, command @ ..] = arguments else { return None };
    let is_order = [emulator, with] == BECOME && separator == SEPARATOR;
    is_order.then(|| parent.to_str()?.parse().ok().map(|parent| (parent, command))).flatten()
}

fn become_emulator(parent: u32, command: &[OsString]) -> Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("the kernel does not end processes with their parents")?;
    // It may have ended before the signal was set.
    ensure!(parent_id() == parent, "the process that started the emulator has ended");
    let (program, arguments) = command.split_first().context("no emulator is named")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| explain(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(u32, String)> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (parent, command) = parse(&arguments)?;
        Some((parent, command.join(" ".as_ref()).to_string_lossy().into_owned()))
    }

    #[test]
    fn only_a_whole_order_makes_an_emulator() {
        assert_eq!(parsed("emulator --with 12 -- qemu -m 64M"), Some((12, "qemu -m 64M".to_owned())));
        for line in ["up host.toml", "emulator", "emulator --with x -- qemu", "emulator --with 12 qemu -m"] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    #[test]
    fn a_program_that_cannot_become_an_emulator_starts_them_unbound() {
        assert_eq!(bound(Command::new("qemu")).get_program(), "qemu");
    }
}
