// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates with another configuration that a client has to confirm: it is undone with the image.

use anyhow::{Result, bail, ensure};
use baton::config::Control;
use baton::keys;
use bundle::{ControlKeyConfig, ControlRole};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::recipe::{Recipe, folder};
use wire::{EventKind, ReplyBody, RequestBody, UpdateBy, UploadKind};

use super::{are_stained, both_go_on, send_file, two_keepers};
use crate::Rule;

pub const RULES: &[Rule] = &[(
    "a_configuration_that_locks_its_operator_out_undoes_itself",
    a_configuration_that_locks_its_operator_out_undoes_itself,
)];

/// Enough for an answer of a crowded machine.
const AMPLE_S: u32 = 30;

/// Without a confirmation keys come and go with the image. With one they stay, and the bundle before is given back.
fn a_configuration_that_locks_its_operator_out_undoes_itself() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    send_file(&mut host, UploadKind::Bundle, &with_a_key(false)?)?;
    host.client()?.send(order(3))?;
    host.event(&EventKind::UpdateReturns { generation: 2 })?;
    host.event(&EventKind::HostUpdated { generation: 3 })?;
    both_go_on(&mut host)?;
    ensure!(keys_of(&mut host)? == 0, "the host has kept a key that no client has: {}", host.seen);

    let bundle = with_a_key(true)?;
    send_file(&mut host, UploadKind::Bundle, &bundle)?;
    let ReplyBody::Updated(report) = host.client()?.request_within(BOOT_LIMIT, order(AMPLE_S))? else {
        bail!("no update: {}", host.seen)
    };
    ensure!(report.generation == 4 && keys_of(&mut host)? == 1, "{report:?}");
    let before = host.client()?.info()?.memory_free_bytes;
    host.order(RequestBody::Confirm)?;
    let after = host.client()?.info()?.memory_free_bytes;
    ensure!(after - before >= bundle.len() as u64, "{before} bytes were free, and then {after}");
    both_go_on(&mut host)?;
    ensure!(keys_of(&mut host)? == 1, "the key is gone");
    host.powers_off()
}

fn order(seconds: u32) -> RequestBody {
    RequestBody::UpdateUnlessConfirmed { is_dry_run: false, by: UpdateBy::Upload, seconds }
}

/// The same guests on a host with a control key; whether it takes unsigned requests all the same.
fn with_a_key(is_serial_open: bool) -> Result<Vec<u8>> {
    let folder = folder()?;
    let (key, _) = keys::generate(&folder.path().join("ops"))?;
    let key = ControlKeyConfig { name: "ops".to_owned(), key: key.bytes(), role: ControlRole::Update };
    Recipe { control: Control { keys: vec![key], is_serial_open }, ..two_keepers()? }.bundle()
}

fn keys_of(host: &mut Host) -> Result<usize> {
    match host.client()?.request(RequestBody::ControlKeys)? {
        ReplyBody::ControlKeys(keys) => Ok(keys.len()),
        other => bail!("no keys: {other:?}"),
    }
}
