// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton key`: keys that images and requests are signed with.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use comfy_table::{Table, presets};
use seal::{KeyError, PublicKey};
use wire::{ControlKey, RequestBody};

use super::{DONE, connect};
use crate::args::{Format, KeyCommand, Target};
use crate::keys;

pub(super) fn run(target: &Target, command: &KeyCommand) -> Result<u8> {
    match command {
        KeyCommand::New { file } => {
            let (key, beside) = keys::generate(file)?;
            println!("{key}");
            eprintln!("secret key in {}, public key in {}; for host.toml:", file.display(), beside.display());
            eprintln!("[trust]\nkeys = [\"{key}\"]");
            eprintln!("or [[trust.control]] with a name, key = \"{key}\" and a role, to sign requests");
        }
        KeyCommand::Show { file } => println!("{}", show(file)?),
        KeyCommand::List(format) => list(target, *format)?,
        KeyCommand::Revoke { revoked } => {
            connect(target)?.order(RequestBody::RevokeControlKey { name: revoked.clone() })?;
            println!("{revoked} is revoked until the machine is reset; take it out of host.toml, too");
        }
    }
    Ok(DONE)
}

fn list(target: &Target, format: Format) -> Result<()> {
    let keys = connect(target)?.control_keys()?;
    match format.json {
        true => {
            keys.iter().for_each(|key| println!("{}", json(key)));
            Ok(())
        }
        false if keys.is_empty() => {
            println!("this host has no control keys: its requests are not signed");
            Ok(())
        }
        false => {
            println!("{}", table(&keys));
            Ok(())
        }
    }
}

fn json(key: &ControlKey) -> serde_json::Value {
    let public = PublicKey::from_bytes(key.key).to_string();
    serde_json::json!({ "name": key.name, "key": public, "role": key.role, "sessions": key.sessions })
}

fn table(keys: &[ControlKey]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["NAME", "KEY", "ROLE", "SESSIONS"]);
    for key in keys {
        let role = key.role.map_or_else(|| "revoked".to_owned(), |role| role.to_string());
        let id = PublicKey::from_bytes(key.key).id().to_string();
        table.add_row([key.name.clone(), id, role, key.sessions.to_string()]);
    }
    table
}

/// Reads the public key in a file, or derives it from the secret key there.
fn show(file: &Path) -> Result<seal::PublicKey> {
    let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    text.trim_end().parse().or_else(|error| match error {
        KeyError::Secret => keys::secret(file).map(|key| key.public()),
        error => bail!("{}: {error}", file.display()),
    })
}
