// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running hosts by their names: where clients connect to them.
//!
//! A host's folder is `$XDG_RUNTIME_DIR/baton/<name>/`, or without that variable
//! `<temporary folder>/baton-<uid>/<name>/`. The process holds a lock on a file there for as long as the host runs; a
//! folder with a free lock is no running host's, whatever files are left there.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rustix::process::{Pid, getuid};

/// The default name of a host.
pub const DEFAULT_NAME: &str = "default";

/// The socket at which clients connect.
pub const CONTROL_SOCKET: &str = "control.sock";
/// The file that is locked while the host runs.
pub const LOCK: &str = "lock";
/// The file with the process ids of a lab host: `baton up`, emulator.
pub const PIDS: &str = "pids";

/// Returns the folder of the host called `name`, whether it runs or not.
pub fn path_of(name: &str) -> Result<PathBuf> {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 32 || name.starts_with('.') || !name.bytes().all(is_possible) {
        bail!("{name:?} is no name for a host; write up to 32 letters, digits, '-', '_' and '.'");
    }
    Ok(base().join(name))
}

/// Returns the control socket of the running host called `name`.
pub fn control_socket_of(name: &str) -> Result<PathBuf> {
    let path = path_of(name)?;
    if is_running(&path) {
        return Ok(path.join(CONTROL_SOCKET));
    }
    match &running()[..] {
        [] => bail!("no host is running; `cargo baton up host.toml` starts one in an emulator"),
        others => bail!("no host called {name:?} is running; choose with --name: {}", others.join(", ")),
    }
}

/// Returns the process ids (tool, emulator) of the running host called `name`.
pub fn pids_of(name: &str) -> Option<(Pid, Pid)> {
    let path = path_of(name).ok().filter(|path| is_running(path))?;
    let text = fs::read_to_string(path.join(PIDS)).ok()?;
    let (tool, emulator) = text.trim().split_once(' ')?;
    Some((process_id(tool)?, process_id(emulator)?))
}

/// Parses a process id: a negative number would be a group of processes.
fn process_id(number: &str) -> Option<Pid> {
    number.parse().ok().filter(|&number| number > 0).and_then(Pid::from_raw)
}

/// Returns the names of running hosts.
pub fn running() -> Vec<String> {
    let entries = fs::read_dir(base()).into_iter().flatten().flatten();
    let running = entries.filter(|entry| is_running(&entry.path()));
    let mut names: Vec<_> = running.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns whether the host of the folder at `path` runs: it holds the lock.
pub fn is_running(path: &Path) -> bool {
    File::open(path.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Returns the folder of all hosts' folders.
pub fn base() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("baton"),
        None => env::temp_dir().join(format!("baton-{}", getuid())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "..", ".x", "a/b", "ä"] {
            assert!(path_of(name).is_err(), "{name}");
        }
        assert!(path_of("host-1").is_ok());
    }

    #[test]
    fn a_process_id_is_of_one_process() {
        assert_eq!(process_id("12"), Pid::from_raw(12));
        for number in ["-12", "0", "", "12 "] {
            assert_eq!(process_id(number), None, "{number:?}");
        }
    }
}
