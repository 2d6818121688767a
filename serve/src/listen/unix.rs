// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unix sockets: each is a file with the mode that the operator chose, and is removed when the service ends.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener as Listener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::net::UnixListener;

use super::BACKLOG;

#[cfg(test)]
mod tests;

/// The file of a Unix socket, which is removed with this value.
pub struct SocketFile {
    path: PathBuf,
    /// Its device and inode: another service may have replaced the file.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // The next service replaces a file that stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Makes a socket with this mode, in place of one at which no service listens any more.
///
/// # Errors
/// Another service listens there, or the file cannot be made.
pub fn open(path: &Path, mode: u32) -> Result<(UnixListener, SocketFile)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    if path.exists() {
        ensure!(UnixStream::connect(path).is_err(), "{}: another service listens there", path.display());
        fs::remove_file(path).with_context(|| format!("{} cannot be replaced", path.display()))?;
    }
    let made = listener(path, mode).and_then(|listener| Ok((UnixListener::from_std(listener)?, identity(path)?)));
    let (listener, identity) = made.with_context(|| format!("{} cannot be made", path.display()))?;
    Ok((listener, SocketFile { path: path.to_owned(), identity }))
}

/// The file never permits more than the mode. The umask is the whole process's, and that of programs that it starts
/// meanwhile; so it stays as it is.
fn listener(path: &Path, mode: u32) -> io::Result<Listener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Linux gives the file the socket's own mode, less the umask.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    // The umask may have taken rights from it.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    listen(&socket, BACKLOG.cast_signed())?;
    Ok(socket.into())
}
