// SPDX-License-Identifier: MIT OR Apache-2.0
//! The default paths of commands.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

/// Returns the hypervisor's image: `named`, else `BATON_IMAGE`, else `baton.elf` by this program or in the workspace's
/// target folder.
pub fn default_image(named: Option<&Path>) -> Result<PathBuf> {
    let from_environment = || env::var_os("BATON_IMAGE").map(PathBuf::from);
    if let Some(path) = named.map(Path::to_owned).or_else(from_environment) {
        if !path.is_file() {
            bail!("the image {} does not exist; build it with `make`, or correct --image", path.display());
        }
        return Ok(path);
    }
    let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join("baton.elf")));
    let in_workspace = workspace().ok().map(|root| root.join("target/baton.elf"));
    let found = beside.into_iter().chain(in_workspace).find(|path| path.is_file());
    found.context("there is no image baton.elf; build it with `make`, or name one with --image or BATON_IMAGE")
}

/// Returns the loader of guests that start from their own disk: `BATON_LOADER`, else `baton-loader` by this program or
/// in the workspace's target folder.
pub fn loader() -> Result<PathBuf> {
    if let Some(path) = env::var_os("BATON_LOADER").map(PathBuf::from) {
        ensure!(path.is_file(), "the loader {} does not exist; correct BATON_LOADER", path.display());
        return Ok(path);
    }
    let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join("baton-loader")));
    let in_workspace = workspace().ok().map(|root| root.join("target/baton-loader"));
    // A test's own program is not linked statically.
    let found = in_workspace.into_iter().chain(beside).find(|path| path.is_file());
    found.context("there is no baton-loader; build it with scripts/build.sh guests, or name one with BATON_LOADER")
}

/// Returns the folder of Baton's sources, above the current folder or above this program.
pub fn workspace() -> Result<PathBuf> {
    let program = env::current_exe().ok();
    let starts = env::current_dir().ok().into_iter().chain(program);
    let is_root = |folder: &&Path| folder.join("hypervisor/Cargo.toml").is_file() && folder.join("guests").is_dir();
    let found = starts.into_iter().find_map(|start| start.ancestors().find(is_root).map(Path::to_owned));
    found.context("this is no folder of Baton's sources; change into one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_not_there_is_named() {
        let error = default_image(Some(Path::new("/nowhere/baton.elf"))).expect_err("not there").to_string();
        assert_eq!(error, "the image /nowhere/baton.elf does not exist; build it with `make`, or correct --image");
    }
}
