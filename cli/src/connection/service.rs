// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line through the Unix socket of `baton serve` on this machine: who may open the socket may do everything there.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::address::DEFAULT_BAUD;
use super::line::Line;
use super::network;
use super::upgrade::{PATIENCE, upgrade};

/// The service's name in requests over its socket.
const AUTHORITY: &str = "baton";

/// Connects to a host of the service: the one of this name, or its only one.
///
/// # Errors
/// The reason, with a hint: no such socket, no permission, no such host. A refusal is a [`wire::Refusal`].
pub(super) fn open(path: &Path, name: Option<&str>) -> Result<Line> {
    let mut socket = network::unix_socket(path, "`baton serve`")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    upgrade(&mut socket, AUTHORITY, name).with_context(|| format!("the service at {}", path.display()))?;
    // How fast the line behind the service is, is not known.
    socket.set_nonblocking(true)?;
    Ok(Line::over(socket).with_baud(DEFAULT_BAUD))
}
