// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton key`: keys that images are signed with.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use seal::KeyError;

use super::DONE;
use crate::args::KeyCommand;
use crate::keys;

pub(super) fn run(command: &KeyCommand) -> Result<u8> {
    match command {
        KeyCommand::New { file } => {
            let (key, beside) = keys::generate(file)?;
            println!("{key}");
            eprintln!("secret key in {}, public key in {}; for host.toml:", file.display(), beside.display());
            eprintln!("[trust]\nkeys = [\"{key}\"]");
        }
        KeyCommand::Show { file } => println!("{}", show(file)?),
    }
    Ok(DONE)
}

/// Reads the public key in a file, or derives it from the secret key there.
fn show(file: &Path) -> Result<seal::PublicKey> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    text.trim_end().parse().or_else(|error| match error {
        KeyError::Secret => keys::secret(file).map(|key| key.public()),
        error => bail!("{}: {error}", file.display()),
    })
}
