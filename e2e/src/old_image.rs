// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images with notes that claim less than the images support.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use baton::image::sealed;
use handover::image::{BUILD_TEXT_BYTES, NEWEST_DEVICE};
use handover::state::DeviceKind;

use crate::place::built;

/// The image, which states in its note that this is the newest kind of device that it knows. It is of now: guests that
/// come to it lose what an image of old would lose, and come back from it.
pub fn knowing_devices_up_to(newest: DeviceKind) -> Result<Vec<u8>> {
    const VERSION_TEXT_AT: usize = 24;
    // Behind owner, entry, versions and both texts: the versions of trial pages, of security and of IOMMUs.
    const NEWEST_DEVICE_AT: usize = VERSION_TEXT_AT + 24 + BUILD_TEXT_BYTES + 12;
    let mut image = fs::read(built("baton.elf")?)?;
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let is_note =
        |at: &usize| image[*at..].starts_with(b"Baton\0\0\0") && image[*at + VERSION_TEXT_AT..].starts_with(text);
    let at = (0..image.len() - NEWEST_DEVICE_AT - 4).rev().find(is_note).context("the image has no note")?;
    let place = &mut image[at + NEWEST_DEVICE_AT..][..4];
    ensure!(place == NEWEST_DEVICE.to_le_bytes(), "the note has another layout");
    place.copy_from_slice(&(newest as u32).to_le_bytes());
    Ok(sealed(image))
}
