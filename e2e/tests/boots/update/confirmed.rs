// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates that a client has to confirm: where none does in time, the host returns to the image before by itself, and
//! guests go on.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Image;
use baton::image::sealed;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::built;
use e2e::recipe::{Recipe, folder};
use e2e::tool::Operator;
use handover::Kind;
use wire::{EventKind, RefusalCode, ReplyBody, RequestBody, UpdateBy, UploadKind};

use super::{OTHER_VERSION, are_stained, both_go_on, is_starved, of_version, send_image, two_keepers};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("a_confirmed_update_stays", a_confirmed_update_stays),
    ("an_update_without_confirmation_returns_under_running_guests", one_without_confirmation_returns),
    ("an_image_that_breaks_its_control_line_undoes_itself", one_that_breaks_its_line_undoes_itself),
    ("a_host_that_cannot_return_reports_why_and_stays", one_that_cannot_return_stays),
    ("an_image_that_would_not_return_is_refused", one_that_would_not_return_is_refused),
    ("the_tool_confirms_over_a_connection_of_its_own", the_tool_confirms),
];

/// Enough for an answer of a crowded machine.
const AMPLE_S: u32 = 8;

fn order(by: UpdateBy, seconds: u32) -> RequestBody {
    RequestBody::UpdateUnlessConfirmed { is_dry_run: false, by, seconds }
}

/// Updates; the new image is still to be confirmed.
fn update(host: &mut Host, by: UpdateBy, seconds: u32) -> Result<()> {
    loop {
        match host.client()?.request_within(BOOT_LIMIT, order(by, seconds)) {
            Ok(ReplyBody::Updated(report)) => {
                ensure!(report.generation == 2, "{report:?}");
                return Ok(());
            }
            Err(error) if is_starved(&error) => host.wait_a_moment()?,
            other => {
                // The log names what happened.
                host.listen(Duration::from_secs(1));
                return other.map(drop).with_context(|| host.seen.to_string());
            }
        }
    }
}

fn generation(host: &mut Host) -> Result<u64> {
    Ok(host.client()?.info()?.generation)
}

fn a_confirmed_update_stays() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let refusal = host.refusal(RequestBody::Confirm)?;
    ensure!(refusal.code == RefusalCode::WrongState && refusal.reason.contains("no update waits"), "{refusal:?}");
    let refusal = host.refusal(order(UpdateBy::Bundle, 0))?;
    ensure!(refusal.code == RefusalCode::Invalid && refusal.hint.contains("1 to 86400"), "{refusal:?}");
    update(&mut host, UpdateBy::Bundle, AMPLE_S)?;
    let refusal = host.refusal(RequestBody::Restart)?;
    ensure!(refusal.reason.contains("not confirmed") && refusal.hint.contains("baton confirm"), "{refusal:?}");
    host.order(RequestBody::Confirm)?;
    host.event(&EventKind::UpdateConfirmed { generation: 2 })?;
    host.order(RequestBody::Confirm)?;
    host.listen(Duration::from_secs(AMPLE_S.into()));
    both_go_on(&mut host)?;
    ensure!(generation(&mut host)? == 2, "it has returned: {}", host.seen);
    host.powers_off()
}

/// To an image that calls itself another version, and back.
fn one_without_confirmation_returns() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let file = sealed(of_version(std::fs::read(built("baton.elf")?)?, OTHER_VERSION)?);
    send_image(&mut host, &file)?;
    update(&mut host, UpdateBy::Upload, 2)?;
    host.event(&EventKind::UpdateReturns { generation: 2 })?;
    host.event(&EventKind::HostUpdated { generation: 3 })?;
    both_go_on(&mut host)?;
    let info = host.client()?.info()?;
    ensure!((info.generation, info.version.as_str()) == (3, env!("CARGO_PKG_VERSION")), "{info:?}");
    let refusal = host.refusal(RequestBody::Confirm)?;
    ensure!(refusal.reason.contains("no update waits"), "the image that was returned to stays: {refusal:?}");
    host.powers_off()
}

/// The image hears nothing and sends nothing: what has happened meanwhile, the image before reports.
fn one_that_breaks_its_line_undoes_itself() -> Result<()> {
    let recipe = two_keepers()?.with_fault_points().options("selftest=update:breaks-line update-limit=10000");
    let mut host = recipe.start()?;
    are_stained(&mut host)?;
    host.client()?.send(order(UpdateBy::Bundle, 3))?;
    host.event(&EventKind::UpdateReturns { generation: 2 })?;
    host.event(&EventKind::HostUpdated { generation: 3 })?;
    both_go_on(&mut host)?;
    ensure!(generation(&mut host)? == 3, "{}", host.seen);
    host.powers_off()
}

/// The bundle's image, which is the one that runs, was damaged after it was sealed.
fn one_that_cannot_return_stays() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("damaged.elf");
    let good = sealed(std::fs::read(built("baton.elf")?)?);
    let mut damaged = good.clone();
    let text = b"this host permits no downgrade";
    let at = damaged.windows(text.len()).position(|bytes| bytes == text).context("the image lacks a text")?;
    damaged[at] ^= 1;
    std::fs::write(&path, damaged)?;
    let mut host = Recipe { image: Image::File(path), ..two_keepers()? }.start()?;
    are_stained(&mut host)?;
    send_image(&mut host, &good)?;
    update(&mut host, UpdateBy::Upload, 2)?;
    host.event(&EventKind::UpdateReturns { generation: 2 })?;
    host.wait("the event that the host stays", |seen| {
        let is_it = |event: &EventKind| match event {
            EventKind::UpdateStays { generation: 2, reason } => reason.contains("not trusted"),
            _ => false,
        };
        seen.events.iter().any(is_it)
    })?;
    both_go_on(&mut host)?;
    ensure!(generation(&mut host)? == 2, "{}", host.seen);
    host.powers_off()
}

/// Its note states a section of the hand-over that is older, as images before this one do, or none.
fn one_that_would_not_return_is_refused() -> Result<()> {
    const NEWEST_SECTION_AT: usize = 88;
    let mut image = std::fs::read(built("baton.elf")?)?;
    let is_note = |at: &usize| {
        image[*at..].starts_with(b"Baton\0\0\0") && image[*at + 24..].starts_with(env!("CARGO_PKG_VERSION").as_bytes())
    };
    let at = (0..image.len() - 100).rev().find(is_note).context("the image has no note")? + NEWEST_SECTION_AT;
    ensure!(image[at..at + 4] == handover::image::NEWEST_SECTION.to_le_bytes(), "the note has changed");
    image[at..at + 4].copy_from_slice(&(Kind::Deadline as u32 - 1).to_le_bytes());
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    host.logs(&["functions probed"])?;
    host.upload(UploadKind::Image, &sealed(image))?;
    let free = host.client()?.info()?.memory_free_bytes;
    let refusal = host.refusal(order(UpdateBy::Upload, AMPLE_S))?;
    ensure!(refusal.reason.contains("would stay even if no client confirms"), "{refusal:?}");
    ensure!(host.client()?.info()?.memory_free_bytes == free, "something was staged");
    both_go_on(&mut host)?;
    host.powers_off()
}

fn the_tool_confirms() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    operator.run(&["up", "--detach", "host.toml"])?.well()?;
    let out = operator.run(&["update", "--confirm-within", "60"])?.well()?;
    ensure!(out.contains("generation   2 (") && out.contains("confirmed    the new image was reached"), "{out}");
    let events = operator.run(&["events"])?.well()?;
    ensure!(events.contains("update to generation 2 confirmed"), "{events}");
    operator.run(&["update", "--previous", "--confirm-within", "60", "--no-confirm"])?.well()?;
    let out = operator.run(&["confirm"])?.well()?;
    ensure!(out.contains("stays with generation 3"), "{out}");
    operator.run(&["down", "--yes"])?.well()?;
    Ok(())
}
