// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that come and go, and settings that change, while the host runs.

use anyhow::{Result, ensure};
use baton::bundle::addition;
use baton::config::{Guest, show::host_toml};
use baton::image::sealed;
use baton::size::Size;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::Build;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, RefusalCode, ReplyBody, RequestBody, UpdateBy, UploadKind, VmSettings, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("guests_come_and_go_and_an_update_takes_them_along", guests_come_and_go),
    ("a_warm_restart_begins_with_the_changed_configuration", a_restart_begins_with_the_changed_configuration),
];

pub const LONG_RULES: &[Rule] = &[
    ("a_host_without_a_bundle_takes_guests_and_hands_them_over", a_host_without_a_bundle_takes_guests),
    ("a_thousand_guests_that_have_gone_hold_no_memory", a_thousand_guests_hold_no_memory),
];

const A: &str = "a";
const B: &str = "b";

fn named(name: &str) -> String {
    name.to_owned()
}

/// A beating guest that is no host's yet.
fn beating(name: &str) -> Result<Guest> {
    tiny(name, "keeper", "do=beat")
}

/// Sends a guest's files, and asks for it.
fn create(host: &mut Host, guest: &Guest) -> Result<RequestBody> {
    let (manifest, files) = addition(guest, &[])?;
    for (_, content) in &files {
        host.upload(UploadKind::File, content)?;
    }
    Ok(RequestBody::VmCreate { manifest: manifest.to_content() })
}

fn start(host: &mut Host, name: &str) -> Result<()> {
    host.order(RequestBody::VmStart { name: named(name) })?;
    host.beats(name, 2)
}

fn stop(host: &mut Host, name: &str) -> Result<()> {
    host.order(RequestBody::VmStop { name: named(name) })?;
    host.state(name, VmState::Stopped).map(drop)
}

fn set(name: &str, settings: VmSettings) -> RequestBody {
    RequestBody::VmSet { name: named(name), settings }
}

fn free_bytes(host: &mut Host) -> Result<u64> {
    Ok(host.client()?.info()?.memory_free_bytes)
}

/// The order is refused with this in its reason, and nothing has changed.
fn refuses(host: &mut Host, body: RequestBody, code: RefusalCode, reason: &str) -> Result<()> {
    let before = host.client()?.config()?;
    let refusal = host.refusal(body)?;
    ensure!(refusal.code == code && refusal.reason.contains(reason), "{refusal:?}, not {reason:?}");
    ensure!(host.client()?.config()? == before, "{reason}: something has changed");
    Ok(())
}

fn guests_come_and_go() -> Result<()> {
    let mut host = Recipe::new().beating(A)?.start()?;
    host.beats(A, 1)?;
    let body = create(&mut host, &beating(B)?)?;
    // Once, so that what is made for the first time is there.
    host.order(body.clone())?;
    start(&mut host, B)?;
    stop(&mut host, B)?;
    host.order(RequestBody::VmDelete { name: named(B) })?;
    come_and_go(&mut host, &body, 20)?;
    host.order(body.clone())?;
    start(&mut host, B)?;
    are_refused(&mut host, body)?;
    host.order(set(A, VmSettings { weight: Some(300), on_panic: Some(named("reset")), ..VmSettings::default() }))?;
    host.order(set(B, VmSettings { weight: Some(50), autostart: Some(false), ..VmSettings::default() }))?;
    let before = host.client()?.config()?;
    host.update_to(2)?;
    host.beats(A, 5)?;
    host.beats(B, 5)?;
    ensure!(host.client()?.config()? == before, "the update has changed the configuration");
    let shown = host_toml(&before);
    ensure!(shown.contains("weight = 300") && shown.contains("on_panic = \"reset\""), "{shown}");
    stop(&mut host, A)?;
    host.order(set(A, VmSettings { vcpus: Some(2), memory_bytes: Some(32 << 20), ..VmSettings::default() }))?;
    let vm = host.vm(A)?;
    ensure!((vm.vcpus, vm.memory_bytes) == (2, 32 << 20), "{vm:?}");
    sees_more_than_it_has(&mut host)?;
    host.order(RequestBody::VmDelete { name: named(A) })?;
    // Guest b is the first one now, and the next image must find its state all the same.
    host.update_to(3)?;
    host.beats(B, 5)?;
    let beats = host.seen.heartbeats(B);
    let last = beats.iter().rposition(|beat| *beat == 0).unwrap_or(0);
    ensure!(beats[last..].iter().copied().eq(0..(beats.len() - last) as u64), "b was interrupted: {beats:?}");
    ensure!(host.client()?.vms()?.len() == 1, "a is there again");
    let name = || named(A);
    // Heartbeats that waited while the update took long are counted, too: events may come behind them.
    for expected in [EventKind::VmChanged { name: name() }, EventKind::VmDeleted { name: name() }] {
        host.event(&expected)?;
    }
    let created = host.seen.events.iter().filter(|kind| **kind == EventKind::VmCreated { name: named(B) }).count();
    // Once at first, twenty times, and once to stay.
    ensure!(created == 22, "{created} guests created");
    host.powers_off()
}

/// Guest a, which does not run, gets memory on demand, and starts with it.
fn sees_more_than_it_has(host: &mut Host) -> Result<()> {
    let most = 64 << 20;
    host.order(set(A, VmSettings { memory_max_bytes: Some(most), ..VmSettings::default() }))?;
    start(host, A)?;
    host.beats(A, 2)?;
    let vm = host.vm(A)?;
    ensure!(vm.memory_bytes == most && vm.resident_bytes.is_some_and(|bytes| bytes < most), "{vm:?}");
    stop(host, A)
}

/// Guest b is created and deleted so often. No frame is lost.
fn come_and_go(host: &mut Host, body: &RequestBody, times: usize) -> Result<()> {
    let free = free_bytes(host)?;
    for _ in 0..times {
        host.order(body.clone())?;
        host.order(RequestBody::VmDelete { name: named(B) })?;
    }
    let left = free_bytes(host)?;
    ensure!(left == free, "{times} guests that are gone hold {} bytes", free.abs_diff(left));
    Ok(())
}

fn a_thousand_guests_hold_no_memory() -> Result<()> {
    let mut host = Recipe::new().start()?;
    let body = create(&mut host, &beating(B)?)?;
    come_and_go(&mut host, &body, 1)?;
    host.allow(BOOT_LIMIT);
    come_and_go(&mut host, &body, 1000)?;
    host.powers_off()
}

/// A change that is not possible is refused by name, and nothing is lost.
fn are_refused(host: &mut Host, again: RequestBody) -> Result<()> {
    use RefusalCode::{Exhausted, Invalid, UnknownVm, WrongState};
    refuses(host, again, Invalid, "\"b\" stands twice")?;
    refuses(host, RequestBody::VmDelete { name: named(B) }, WrongState, "'b' is running")?;
    refuses(host, RequestBody::VmDelete { name: named("c") }, UnknownVm, "no guest 'c'")?;
    let vcpus = VmSettings { vcpus: Some(2), ..VmSettings::default() };
    refuses(host, set(B, vcpus), WrongState, "the number of vCPUs")?;
    let weight = VmSettings { weight: Some(0), ..VmSettings::default() };
    refuses(host, set(B, weight), Invalid, "bad weight")?;
    let on_panic = VmSettings { on_panic: Some(named("dance")), ..VmSettings::default() };
    refuses(host, set(B, on_panic), Invalid, "\"dance\" is unknown")?;
    let large = create(host, &Guest { memory: Size::mebibytes(1 << 20), ..beating("c")? })?;
    refuses(host, large, Exhausted, "'c' needs 1024 GiB of memory")?;
    let (manifest, _) = addition(&Guest { kernel: Build::Shipped.file()?, ..beating("c")? }, &[])?;
    refuses(host, RequestBody::VmCreate { manifest: manifest.to_content() }, Invalid, "the host has no file")?;
    refuses(host, RequestBody::VmCreate { manifest: vec![1, 2, 3] }, Invalid, "manifest")?;
    let sent: Vec<_> = host.client()?.files()?.into_iter().filter(|file| file.is_sent).collect();
    ensure!(sent.len() == 1 && sent[0].is_needed, "{sent:?}");
    refuses(host, RequestBody::FileRemove { name: sent[0].name.clone() }, WrongState, "guest 'b' needs")
}

fn a_host_without_a_bundle_takes_guests() -> Result<()> {
    let mut host = Recipe::new().start_with(None)?;
    host.is_ready()?;
    ensure!(host.client()?.vms()?.is_empty(), "guests from nowhere");
    let body = create(&mut host, &beating(A)?)?;
    host.order(body)?;
    start(&mut host, A)?;
    host.upload(UploadKind::Image, &sealed(std::fs::read(Build::Shipped.file()?)?))?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Upload };
    match host.client()?.request_within(BOOT_LIMIT, update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == 2, "{report:?}"),
        other => anyhow::bail!("not the answer to an update: {other:?}"),
    }
    host.beats(A, 5)?;
    stop(&mut host, A)?;
    host.order(RequestBody::VmDelete { name: named(A) })?;
    ensure!(host.client()?.files()?.is_empty(), "a file that no guest needs is listed");
    host.powers_off()
}

fn a_restart_begins_with_the_changed_configuration() -> Result<()> {
    let mut host = Recipe::new().beating(A)?.beating(B)?.start()?;
    host.beats(B, 1)?;
    stop(&mut host, A)?;
    host.order(RequestBody::VmDelete { name: named(A) })?;
    let body = create(&mut host, &beating("c")?)?;
    host.order(body)?;
    host.order(set("c", VmSettings { weight: Some(7), ..VmSettings::default() }))?;
    let mut before = host.client()?.config()?;
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Restart)? {
        ReplyBody::Restarted(report) => ensure!(report.generation == 2, "{report:?}"),
        other => anyhow::bail!("not the answer to a restart: {other:?}"),
    }
    host.beats(B, 2)?;
    host.beats("c", 2)?;
    let mut after = host.client()?.config()?;
    for manifest in [&mut before, &mut after] {
        manifest.guests.sort_by(|one, other| one.name.cmp(&other.name));
    }
    ensure!(before == after, "{before:?} {after:?}");
    host.powers_off()
}
