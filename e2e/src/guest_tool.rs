// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests whose `/init` is a shell script, with or without the tool: this program, which plays it there.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use baton::config::Guest;
use baton::size::Size;
use lab::inside;

use crate::place::{Kernel, built};
use crate::recipe::program;
use crate::stock;
use crate::tool::PLAYS_TOOL;

/// The variable that makes the test program the service.
pub const PLAYS_SERVICE: &str = "BATON_E2E_PLAYS_SERVICE";

/// Memory of a guest with the tool: its files are in it.
const MEMORY: Size = Size::mebibytes(512);

/// A guest with these drivers and files, whose `/init` runs a shell script in which `baton` is the tool and
/// `baton_serve` the service: the host that the tool reaches is the one below the guest.
///
/// # Errors
/// Something that it is made of is not here.
pub fn guest(folder: &Path, name: &str, drivers: &[&str], script: &str, files: &[(&str, &Path)]) -> Result<Guest> {
    let mut guest = program(name, Kernel::Default.file()?);
    guest.memory = MEMORY;
    guest.initrd = Some(built("guests/initramfs.cpio")?);
    guest.cmdline = "console=ttyS0 loglevel=5 panic=1".to_owned();
    let tool = folder.join("tool.cpio");
    let script = format!(
        "export {PLAYS_TOOL}=1 BATON_CONNECT=vsock:2\n\
         baton_serve() {{ env -u {PLAYS_TOOL} {PLAYS_SERVICE}=1 /bin/baton \"$@\"; }}\n{script}"
    );
    let mut content = inside::script(&script, files)?;
    content.extend(inside::program("baton", &std::env::current_exe()?, folder)?);
    fs::write(&tool, content).with_context(|| format!("{} cannot be written", tool.display()))?;
    guest.modules = vec![stock::archive(folder, Kernel::Default, drivers)?, tool];
    Ok(guest)
}
