// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that speak different hand-over versions replace each other. An image of old is played by one whose note is cut down: it reads
//! and writes what its note says, and nothing newer.

use anyhow::{Context as _, Result, ensure};
use e2e::host::Host;
use e2e::place::built;
use handover::{OLDEST_VERSION, VERSION};
use wire::{RequestBody, UpdateBy, UploadKind};

use super::{are_stained, both_go_on, two_keepers, update, update_by};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("an_image_of_old_is_gone_to_and_left_by_its_version", an_image_of_old_is_gone_to_and_left),
    ("an_image_of_old_refuses_one_that_reads_nothing_it_writes", an_image_of_old_refuses_one_it_cannot_write_for),
];

/// Behind a note's owner: the entry, and the oldest and the newest version.
const OLDEST_AT: usize = 16;
const NEWEST_AT: usize = 20;
const VERSION_TEXT_AT: usize = 24;

/// The image, which says in its note that it speaks these versions.
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

/// Goes to the image that was sent; what it was told was of this version.
fn goes_to(host: &mut Host, image: &[u8], generation: u64, version: u32) -> Result<()> {
    host.upload(UploadKind::Image, image)?;
    update_by(host, UpdateBy::Upload)?;
    was_told(host, generation, version)
}

fn was_told(host: &mut Host, generation: u64, version: u32) -> Result<()> {
    host.says(&[&format!("generation {generation}, handed over by"), &format!(", in version {version}")])?;
    both_go_on(host)
}

fn an_image_of_old_is_gone_to_and_left() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let (old, new) = (speaking(OLDEST_VERSION, OLDEST_VERSION)?, speaking(OLDEST_VERSION, VERSION)?);
    goes_to(&mut host, &old, 2, OLDEST_VERSION)?;
    goes_to(&mut host, &new, 3, OLDEST_VERSION)?;
    update_by(&mut host, UpdateBy::Previous)?;
    was_told(&mut host, 4, OLDEST_VERSION)?;
    update_by(&mut host, UpdateBy::Previous)?;
    was_told(&mut host, 5, OLDEST_VERSION)?;
    update(&mut host)?;
    was_told(&mut host, 6, VERSION)?;
    host.powers_off()
}

fn an_image_of_old_refuses_one_it_cannot_write_for() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    goes_to(&mut host, &speaking(OLDEST_VERSION, OLDEST_VERSION)?, 2, OLDEST_VERSION)?;
    host.upload(UploadKind::Image, &speaking(VERSION, VERSION)?)?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Upload })?;
    ensure!(refusal.reason.contains(&format!("reads hand-over versions {VERSION} to {VERSION}")), "{refusal:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}
