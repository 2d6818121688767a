// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that speak different hand-over versions replace each other. An old image is played by one with a note that is
//! cut down: it reads and writes what its note states, and nothing newer.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use baton::config::Image;
use baton::image::sealed;
use e2e::host::Host;
use e2e::place::built;
use e2e::recipe::{Recipe, folder};
use e2e::small_image;
use handover::{OLDEST_VERSION, VERSION};
use wire::{RequestBody, UpdateBy, UploadKind};

use super::{are_stained, both_go_on, send_image, two_keepers, update, update_by};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("an_image_of_old_is_gone_to_and_left_by_its_version", an_image_of_old_is_gone_to_and_left),
    ("images_of_now_speak_the_newest_version", images_of_now_speak_the_newest_version),
    ("an_image_of_old_refuses_one_that_reads_nothing_it_writes", an_image_of_old_refuses_one_it_cannot_write_for),
];

/// Behind a note's owner: the entry, and the oldest and the newest version.
const OLDEST_AT: usize = 16;
const NEWEST_AT: usize = 20;
const VERSION_TEXT_AT: usize = 24;

/// The image, which states in its note that it speaks these versions.
fn speaking(oldest: u32, newest: u32) -> Result<Vec<u8>> {
    let mut image = std::fs::read(built("baton.elf")?)?;
    let owner = b"Baton\0\0\0";
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let is_note = |at: &usize| image[*at..].starts_with(owner) && image[*at + VERSION_TEXT_AT..].starts_with(text);
    let at = (0..image.len() - VERSION_TEXT_AT).rev().find(is_note).context("the image has no note")?;
    image[at + OLDEST_AT..][..4].copy_from_slice(&oldest.to_le_bytes());
    image[at + NEWEST_AT..][..4].copy_from_slice(&newest.to_le_bytes());
    Ok(baton::image::sealed(image))
}

/// The record that the running image read was of this version.
fn is_handed_over_in(host: &mut Host, generation: u64, version: u32) -> Result<()> {
    host.logs(&[&format!("generation {generation}, handed over by"), &format!(", in version {version}")])?;
    both_go_on(host)
}

/// The image of old is in the bundle, the other one is sent.
fn an_image_of_old_is_gone_to_and_left() -> Result<()> {
    let folder = folder()?;
    let mut host = with_old_image(folder.path())?;
    send_image(&mut host, &speaking(OLDEST_VERSION, VERSION)?)?;
    update_by(&mut host, UpdateBy::Upload)?;
    is_handed_over_in(&mut host, 3, OLDEST_VERSION)?;
    update_by(&mut host, UpdateBy::Previous)?;
    is_handed_over_in(&mut host, 4, OLDEST_VERSION)?;
    update_by(&mut host, UpdateBy::Previous)?;
    is_handed_over_in(&mut host, 5, OLDEST_VERSION)?;
    host.powers_off()
}

/// A host that has gone to an image of old.
fn with_old_image(folder: &Path) -> Result<Host> {
    let path = folder.join("old.elf");
    std::fs::write(&path, speaking(OLDEST_VERSION, OLDEST_VERSION)?)?;
    let mut host = Recipe { image: Image::File(path), ..two_keepers()? }.start()?;
    are_stained(&mut host)?;
    update(&mut host)?;
    is_handed_over_in(&mut host, 2, OLDEST_VERSION)?;
    Ok(host)
}

fn images_of_now_speak_the_newest_version() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    update(&mut host)?;
    is_handed_over_in(&mut host, 2, VERSION)?;
    host.powers_off()
}

fn an_image_of_old_refuses_one_it_cannot_write_for() -> Result<()> {
    let folder = folder()?;
    let mut host = with_old_image(folder.path())?;
    host.upload(UploadKind::Image, &sealed(small_image::image(62, VERSION, VERSION)))?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Upload })?;
    ensure!(refusal.reason.contains(&format!("reads hand-over versions {VERSION} to {VERSION}")), "{refusal:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}
