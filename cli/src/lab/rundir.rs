// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder where a running host's sockets are, so that another terminal finds them.
//!
//! `$XDG_RUNTIME_DIR/baton/<name>/`, or without that variable `<temporary folder>/baton-<uid>/<name>/`. It holds a lock for
//! as long as the host runs; whoever finds the lock free finds nothing running, whatever files are left there.

use std::env;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use nix::unistd::Uid;

/// The name of a host that was given none.
pub const DEFAULT_NAME: &str = "default";

/// Where clients connect.
pub(super) const CONTROL_SOCKET: &str = "control.sock";
/// Where the emulator connects.
pub(super) const HOST_SOCKET: &str = "host.sock";
const LOCK: &str = "lock";
const PIDS: &str = "pids";
const BUNDLE: &str = "bundle.cpio";
const LOG: &str = "up.log";

/// The most bytes of a Unix socket's path (108 with the terminating zero).
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The folder of a host that this process runs. Dropping it removes what only a running host needs.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Locked while the host runs.
    _lock: File,
}

impl RunDir {
    /// Takes the folder of the host called `name`; refused where such a host runs.
    pub fn take(name: &str) -> Result<Self> {
        let path = path_of(name)?;
        Self::take_at(&path).with_context(|| format!("the host {name:?} cannot be started"))
    }

    /// Takes the folder at `path`.
    pub fn take_at(path: &Path) -> Result<Self> {
        make_private(path)?;
        let lock = File::create(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                bail!("it runs already; end it with `baton down`, or choose another name with --name")
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Where clients connect.
    pub fn control_socket(&self) -> PathBuf {
        self.path.join(CONTROL_SOCKET)
    }

    /// Where the emulator connects.
    pub fn host_socket(&self) -> PathBuf {
        self.path.join(HOST_SOCKET)
    }

    /// Where the bundle lies while the emulator reads it.
    pub fn bundle(&self) -> PathBuf {
        self.path.join(BUNDLE)
    }

    /// Records our process id and the emulator's.
    pub(super) fn write_pid(&self, emulator: u32) -> io::Result<()> {
        fs::write(self.path.join(PIDS), format!("{} {emulator}\n", std::process::id()))
    }

    /// Listens on a socket of the folder.
    pub(super) fn bind(&self, name: &str) -> Result<UnixListener> {
        let path = self.path.join(name);
        if path.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
            bail!("the path {} is too long for a socket; set XDG_RUNTIME_DIR to a shorter folder", path.display());
        }
        let _ = fs::remove_file(&path);
        UnixListener::bind(&path).with_context(|| format!("the socket {} cannot be made", path.display()))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        for name in [CONTROL_SOCKET, HOST_SOCKET, PIDS, BUNDLE] {
            let _ = fs::remove_file(self.path.join(name));
        }
    }
}

/// The folder of the host called `name`, whether it runs or not.
pub fn path_of(name: &str) -> Result<PathBuf> {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 32 || name.starts_with('.') || !name.bytes().all(is_possible) {
        bail!("{name:?} is no name for a host; write up to 32 letters, digits, '-', '_' and '.'");
    }
    Ok(base().join(name))
}

/// The file a detached host's screen goes to.
pub fn log_path(name: &str) -> Result<PathBuf> {
    let path = path_of(name)?;
    make_private(&path)?;
    Ok(path.join(LOG))
}

/// The control socket of the running host called `name`.
pub fn control_socket_of(name: &str) -> Result<PathBuf> {
    let path = path_of(name)?;
    if is_running(&path) {
        return Ok(path.join(CONTROL_SOCKET));
    }
    match &running()[..] {
        [] => bail!("no host is running; start one with `baton up host.toml`"),
        others => bail!("no host called {name:?} is running; choose with --name: {}", others.join(", ")),
    }
}

/// The process ids (tool, emulator) of the running host called `name`.
pub fn pids_of(name: &str) -> Option<(i32, i32)> {
    let path = path_of(name).ok().filter(|path| is_running(path))?;
    let text = fs::read_to_string(path.join(PIDS)).ok()?;
    let (tool, emulator) = text.trim().split_once(' ')?;
    Some((tool.parse().ok()?, emulator.parse().ok()?))
}

/// The names of running hosts.
pub fn running() -> Vec<String> {
    let entries = fs::read_dir(base()).into_iter().flatten().flatten();
    let running = entries.filter(|entry| is_running(&entry.path()));
    let mut names: Vec<_> = running.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn is_running(path: &Path) -> bool {
    File::open(path.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn base() -> PathBuf {
    match env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("baton"),
        None => env::temp_dir().join(format!("baton-{}", Uid::current())),
    }
}

/// Makes a folder that only we can enter; one that is another's is refused (the temporary folder is everybody's).
fn make_private(path: &Path) -> Result<()> {
    let explain = || format!("the folder {} cannot be used", path.display());
    DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(explain)?;
    for folder in [Some(path), path.parent().filter(|parent| parent.starts_with(base()))].into_iter().flatten() {
        if fs::symlink_metadata(folder).with_context(explain)?.uid() != Uid::current().as_raw() {
            bail!("the folder {} belongs to another user; set XDG_RUNTIME_DIR to one of yours", folder.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_takes_a_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let first = RunDir::take_at(&path).expect("free");
        assert!(is_running(&path));
        assert!(RunDir::take_at(&path).expect_err("taken").to_string().contains("runs already"));
        drop(first);
        assert!(!is_running(&path));
        RunDir::take_at(&path).expect("free again");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "..", ".x", "a/b", "ä"] {
            assert!(path_of(name).is_err(), "{name}");
        }
        assert!(path_of("host-1").is_ok());
    }
}
