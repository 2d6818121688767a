// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drivers of the kernel, from the initial file system: not compressed, each with a name of its own.

use crate::log;
use rustix::io::Errno;
use rustix::system::{finit_module, uname};
use std::fs;
use std::path::{Path, PathBuf};

/// The names of the drivers that the lab has added, in the order in which they are loaded.
const ADDED: &str = "modules.load";

/// Loads the drivers by which a panic is reported, from where `scripts/build.sh` puts those of its kernels.
pub fn load_panic_drivers() {
    let folder = folder();
    ["pvpanic", "pvpanic-mmio"].into_iter().for_each(|name| load(&folder, name));
}

/// Loads the drivers that the lab has added.
pub fn load_added() {
    let folder = folder();
    let list = folder.join(ADDED);
    match fs::read_to_string(&list) {
        Ok(names) => names.lines().for_each(|name| load(&folder, name)),
        Err(error) => log!("baton-agent: {} cannot be read: {error}", list.display()),
    }
    log!("baton-agent: drivers done");
}

fn folder() -> PathBuf {
    Path::new("/lib/modules").join(uname().release().to_string_lossy().as_ref())
}

/// Loads a driver, unless it is there.
fn load(folder: &Path, name: &str) {
    let path = folder.join(format!("{name}.ko"));
    let loaded =
        fs::File::open(&path).map_err(|error| error.to_string()).and_then(|file| match finit_module(&file, c"", 0) {
            Err(error) if error != Errno::EXIST => Err(error.to_string()),
            _ => Ok(()),
        });
    match loaded {
        Ok(()) => log!("baton-agent: loaded {name}"),
        Err(error) => log!("baton-agent: {} cannot be loaded: {error}", path.display()),
    }
}
