// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder where a running host's sockets are, so that another terminal finds them.
//!
//! [`baton::running`] defines its path.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use baton::running::{CONTROL_SOCKET, LOCK, PIDS, base, path_of};
use rustix::process::getuid;

/// The path at which the emulator connects.
pub(super) const HOST_SOCKET: &str = "host.sock";
/// The same of the monitor that reports why it ends.
pub(super) const MONITOR_SOCKET: &str = "monitor.sock";
const BUNDLE: &str = "bundle.cpio";
/// The files that Bochs is started with: a disc, its configuration, and the commands of its debugger.
pub(super) const BOCHS_DISC: &str = "bochs.iso";
pub(super) const BOCHS_CONFIGURATION: &str = "bochsrc";
pub(super) const BOCHS_COMMANDS: &str = "bochs.rc";
const LOG: &str = "up.log";
/// How the names of temporary disks begin.
pub(super) const DISK_PREFIX: &str = "disk-";

/// The maximum length of a Unix socket's path in bytes (108 with the terminating zero).
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
            Ok(()) => {
                remove_disks(path);
                Ok(Self { path: path.to_owned(), _lock: lock })
            }
            Err(TryLockError::WouldBlock) => {
                bail!("it runs already; end it with `baton down`, or choose another name with --name")
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path at which clients connect.
    pub fn control_socket(&self) -> PathBuf {
        self.path.join(CONTROL_SOCKET)
    }

    /// The path at which the emulator connects.
    pub fn host_socket(&self) -> PathBuf {
        self.path.join(HOST_SOCKET)
    }

    /// The path at which its monitor connects.
    pub(super) fn monitor_socket(&self) -> PathBuf {
        self.path.join(MONITOR_SOCKET)
    }

    /// Returns the path of the bundle while the emulator reads it.
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
        let sockets = [CONTROL_SOCKET, HOST_SOCKET, MONITOR_SOCKET];
        for name in sockets.into_iter().chain([PIDS, BUNDLE, BOCHS_DISC, BOCHS_CONFIGURATION, BOCHS_COMMANDS]) {
            let _ = fs::remove_file(self.path.join(name));
        }
        remove_disks(&self.path);
    }
}

/// Removes the temporary disks of the host that the folder belongs to, or belonged to until it was killed.
fn remove_disks(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(DISK_PREFIX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the path of a detached host's output.
pub fn log_path(name: &str) -> Result<PathBuf> {
    let path = path_of(name)?;
    make_private(&path)?;
    Ok(path.join(LOG))
}

/// Makes a folder that only we can enter; one that is another's is refused (all users share the temporary folder).
fn make_private(path: &Path) -> Result<()> {
    let explain = || format!("the folder {} cannot be used", path.display());
    DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(explain)?;
    for folder in [Some(path), path.parent().filter(|parent| parent.starts_with(base()))].into_iter().flatten() {
        if fs::symlink_metadata(folder).with_context(explain)?.uid() != getuid().as_raw() {
            bail!("the folder {} belongs to another user; set XDG_RUNTIME_DIR to one of yours", folder.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton::running::is_running;

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
    fn temporary_disks_are_gone_with_their_host_also_with_one_that_was_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [left, disk, log] = ["disk-9.img", "disk-1.img", "up.log"].map(|name| folder.path().join(name));
        fs::write(&left, "x").expect("written");
        fs::write(&log, "x").expect("written");
        let dir = RunDir::take_at(folder.path()).expect("free");
        assert!(!left.exists());
        fs::write(&disk, "x").expect("written");
        drop(dir);
        assert!(!disk.exists() && log.exists());
    }
}
