// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are no image to update to: refused with the reason before anything stops.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::image::sealed;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::small_image;
use wire::{Refusal, RequestBody, UpdateBy, UploadKind};

use super::{are_stained, both_go_on, two_keepers};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("bad_images_are_refused_and_guests_run_on", bad_images_are_refused),
    ("an_image_that_is_whole_and_does_nothing_is_dropped", an_image_that_does_nothing_is_dropped),
];

fn refuses(host: &mut Host, file: &[u8], parts: &[&str]) -> Result<()> {
    host.allow(BOOT_LIMIT + Duration::from_secs(60));
    // Either its first pieces show what is wrong, or all of it does.
    let refusal = match host.upload(UploadKind::Image, file) {
        Ok(()) => host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Upload })?,
        Err(error) => error.downcast::<Refusal>()?,
    };
    let text = format!("{}; {}", refusal.reason, refusal.hint);
    ensure!(parts.iter().all(|part| text.contains(part)), "{text}");
    host.order(RequestBody::UploadDrop)
}

/// A host, and how much of its memory is free.
fn stable_host() -> Result<(Host, u64)> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let free = host.client()?.info()?.memory_free_bytes;
    Ok((host, free))
}

fn runs_on(host: &mut Host, free: u64) -> Result<()> {
    let info = host.client()?.info()?;
    ensure!((info.generation, info.memory_free_bytes) == (1, free), "{free} {info:?}");
    both_go_on(host)
}

fn bad_images_are_refused() -> Result<()> {
    let (mut host, free) = stable_host()?;
    let good = sealed(small_image::good());
    let flipped: Vec<u8> = good.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 0x1000)).collect();
    let bad: [(&[u8], &[&str]); 6] = [
        (&small_image::good(), &["no seal", "baton image sign"]),
        (&good[..good.len() / 2], &["it is cut off"]),
        (&sealed(small_image::image(183, 1, 1)), &["for another machine", "183"]),
        (&sealed(small_image::image(62, 200, 201)), &["hand-over versions 200 to 201"]),
        (&flipped, &["the image is not trusted"]),
        (b"#!/bin/sh\n", &["no usable ELF file"]),
    ];
    for (file, parts) in bad {
        refuses(&mut host, file, parts)?;
        runs_on(&mut host, free)?;
    }
    host.powers_off()
}

/// It halts at every instruction, and leads nowhere. One that is older is tried only if that is asked for, and once.
fn an_image_that_does_nothing_is_dropped() -> Result<()> {
    let (mut host, free) = stable_host()?;
    const TRIED: &[&str] = &["the new image failed while it prepared itself"];
    const TOO_OLD: &[&str] = &["security version is 0, and this host's is", "--allow-downgrade"];
    refuses(&mut host, &sealed(small_image::good()), TRIED)?;
    let old = sealed(small_image::of_security(0));
    refuses(&mut host, &old, TOO_OLD)?;
    host.order(RequestBody::PermitDowngrade)?;
    refuses(&mut host, &old, TRIED)?;
    refuses(&mut host, &old, TOO_OLD)?;
    runs_on(&mut host, free)?;
    host.powers_off()
}
