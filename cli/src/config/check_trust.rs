// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[trust]`: the keys that sign images, and those that sign requests over the control channel.

use std::path::Path;

use bundle::{ControlKeyConfig, ControlRole, limits};
use seal::PublicKey;
use serde::Deserialize;

use super::Control;
use super::names::is_possible_name;
use super::read::{Section, choice, flag, list, text};
use crate::keys;

/// The content of `[trust]`.
#[derive(Default)]
pub(super) struct Trust {
    pub keys: Vec<PublicKey>,
    pub allow_downgrade: Option<bool>,
    pub control: Control,
}

/// The requests that a host with control keys accepts over a serial line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Serial {
    /// Requests that are signed.
    #[default]
    Session,
    /// Any request.
    Open,
}

pub(super) fn trust(folder: &Path, mut section: Section<'_, '_>) -> Trust {
    let keys = signers(folder, &mut section);
    let allow_downgrade = section.optional("allow_downgrade", flag);
    let serial: Serial = section.optional("serial", choice).unwrap_or_default();
    let tables = section.tables("control");
    if tables.len() > limits::CONTROL_KEYS {
        let (count, most) = (tables.len(), limits::CONTROL_KEYS);
        section.complain(None, format_args!("there are {count} control keys; at most {most} are possible"));
    }
    let mut taken = Vec::new();
    for table in tables.into_iter().take(limits::CONTROL_KEYS) {
        taken.extend(control_key(folder, table, &taken));
    }
    let is_serial_open = serial == Serial::Open;
    let has_update = taken.iter().any(|key| key.role == ControlRole::Update);
    if !taken.is_empty() && !is_serial_open && !has_update {
        section.complain(
            None,
            "no control key has the role \"update\", so no client could update the host or revoke a key; give it to \
             one, or state serial = \"open\"",
        );
    }
    section.finish();
    Trust { keys, allow_downgrade, control: Control { keys: taken, is_serial_open } }
}

fn signers(folder: &Path, section: &mut Section<'_, '_>) -> Vec<PublicKey> {
    let most = limits::TRUSTED_KEYS;
    let mut keys = Vec::new();
    let Some((words, at)) = section.placed("keys", list(text)) else { return keys };
    if words.len() > most {
        section.complain(Some(at), format_args!("there are {} keys; at most {most} are possible", words.len()));
    }
    for word in words.iter().take(most) {
        match keys::public(word, folder) {
            Ok(key) => keys.push(key),
            Err(message) => section.complain(Some(section.place_of(word, at)), message),
        }
    }
    keys
}

fn control_key(folder: &Path, mut section: Section<'_, '_>, taken: &[ControlKeyConfig]) -> Option<ControlKeyConfig> {
    let name = section.required("name", text);
    if let Some((name, at)) = &name {
        section.set_label(format!("control key {name:?}: "));
        if !is_possible_name(name) {
            let most = limits::GUEST_NAME_BYTES;
            let hint = format!("write 1 to {most} letters, digits, '-', '_' and '.'");
            section.complain(Some(*at), format_args!("the name is not possible; {hint}"));
        }
        if taken.iter().any(|other| other.name == *name) {
            section.complain(Some(*at), "another control key has the same name; rename one of them");
        }
    }
    let word = section.required("key", text);
    let key = word.and_then(|(word, at)| match keys::public(&word, folder) {
        Ok(key) if taken.iter().any(|other| other.key[..8] == key.bytes()[..8]) => {
            section.complain(Some(at), "the key stands twice; take one of them out");
            None
        }
        Ok(key) => Some(key),
        Err(message) => {
            section.complain(Some(at), message);
            None
        }
    });
    let role = section.required("role", choice);
    section.finish();
    Some(ControlKeyConfig { name: name?.0, key: key?.bytes(), role: role?.0 })
}
