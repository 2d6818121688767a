// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bundles and options that are not as they should be: the host logs the fault in one line with a hint, stays, and runs
//! what it can.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use bundle::Bundle;
use e2e::host::Host;
use e2e::place::{Emulator, Kernel, built};
use e2e::recipe::{Recipe, folder, linux, program, tiny};
use wire::VmState;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_host_without_a_bundle_stays", a_host_without_a_bundle_stays),
    ("a_bundle_that_is_none_is_refused", a_bundle_that_is_none_is_refused),
    ("a_truncated_bundle_is_refused", a_truncated_bundle_is_refused),
    ("a_damaged_manifest_is_refused", a_damaged_manifest_is_refused),
    ("a_damaged_kernel_keeps_only_its_guest_from_running", a_damaged_kernel_keeps_only_its_guest_from_running),
    ("a_missing_kernel_keeps_only_its_guest_from_running", a_missing_kernel_keeps_only_its_guest_from_running),
    ("impossible_guests_fail_beside_one_that_runs", impossible_guests_fail_beside_one_that_runs),
    ("impossible_options_are_named_and_ignored", impossible_options_are_named_and_ignored),
];

const GOOD: &str = "good";
const BAD: &str = "bad";

/// The one line that reports the fault has all of `parts`, the host is up and runs nothing.
fn is_refused(mut host: Host, parts: &[&str]) -> Result<()> {
    host.is_up()?;
    host.logs(parts)?;
    ensure!(host.client()?.vms()?.is_empty(), "{}", host.seen);
    host.powers_off()
}

/// A guest that is good in a bundle beside one that will be spoilt; no other guest has the latter's kernel.
fn good_and_bad() -> Result<Recipe> {
    Ok(Recipe::new().beating(GOOD)?.guest(tiny(BAD, "hostile", "do=hang-cli")?))
}

fn a_host_without_a_bundle_stays() -> Result<()> {
    is_refused(Recipe::new().start_with(None)?, &["no bundle", "-initrd FILE"])
}

fn a_bundle_that_is_none_is_refused() -> Result<()> {
    let host = Recipe::new().start_with(Some(b"#!/bin/sh\necho this is no bundle\n"))?;
    is_refused(host, &["bundle refused", "no cpio archive", "`baton bundle host.toml -o FILE`"])
}

fn a_truncated_bundle_is_refused() -> Result<()> {
    let recipe = good_and_bad()?;
    let bundle = recipe.bundle()?;
    let host = recipe.start_with(Some(&bundle[..bundle.len() / 2]))?;
    is_refused(host, &["bundle refused", "too early", "copy the bundle again"])
}

fn a_damaged_manifest_is_refused() -> Result<()> {
    let recipe = good_and_bad()?;
    let mut bundle = recipe.bundle()?;
    let at = bundle.windows(7).position(|window| window == b"do=beat").context("the manifest names the tasks")?;
    bundle[at] ^= 1;
    is_refused(recipe.start_with(Some(&bundle))?, &["bundle refused", "manifest", "damaged", "copy the bundle again"])
}

/// `bad` fails with a reason that has all of `parts`; `good` does not notice.
fn fails_beside_good(host: &mut Host, parts: &[&str]) -> Result<()> {
    let reason = host.failure(BAD)?;
    ensure!(parts.iter().all(|part| reason.contains(part)), "{reason}");
    host.logs(&[&reason])?;
    host.beats(GOOD, 5)?;
    host.seen.no_heartbeat_is_missing(GOOD)?;
    Ok(())
}

fn a_damaged_kernel_keeps_only_its_guest_from_running() -> Result<()> {
    let recipe = good_and_bad()?;
    let mut bundle = recipe.bundle()?;
    let kernel = Bundle::parse(&bundle)?.file("hostile.elf")?;
    let at = kernel.as_ptr().addr() - bundle.as_ptr().addr() + kernel.len() / 2;
    bundle[at] ^= 0x10;
    let mut host = recipe.start_with(Some(&bundle))?;
    fails_beside_good(&mut host, &["hostile.elf", "damaged", "copy the bundle again"])?;
    host.powers_off()
}

fn a_missing_kernel_keeps_only_its_guest_from_running() -> Result<()> {
    let recipe = good_and_bad()?;
    let bytes = recipe.bundle()?;
    let bundle = Bundle::parse(&bytes)?;
    let mut manifest = bundle.manifest().clone();
    let bad = manifest.guests.iter_mut().find(|guest| guest.name == BAD).context("it is in the manifest")?;
    bad.kernel = "missing.elf".to_owned();
    let names = manifest.files.iter().map(|file| file.name.as_str());
    let files: Vec<_> = names.map(|name| bundle.file(name).map(|bytes| (name, bytes))).collect::<Result<_, _>>()?;
    let spoilt = bundle::write::build(manifest.host.clone(), manifest.guests.clone(), &files)?;
    let mut host = recipe.start_with(Some(&spoilt))?;
    fails_beside_good(&mut host, &["missing.elf", "no such file", "make the bundle again"])?;
    host.powers_off()
}

/// Each of them on a CPU of its own, so that none keeps another from being tried.
fn impossible_guests_fail_beside_one_that_runs() -> Result<()> {
    let folder = folder()?;
    let text = folder.path().join("kernel.txt");
    fs::write(&text, "this is no kernel\n".repeat(100))?;
    let large = folder.path().join("large.img");
    fs::write(&large, vec![0x5a; 20 << 20])?;
    let initrd = Guest { initrd: Some(large), memory: Size::mebibytes(64), ..linux("cramped", Kernel::Default, "")? };
    let initrd = Guest { memory: Size::mebibytes(16), ..initrd };
    let greedy = Guest { memory: Size::mebibytes(4096), ..linux("greedy", Kernel::Default, "")? };
    let recipe = Recipe::new().cpus(4).beating(GOOD)?.guest(program("text", text));
    let mut host = recipe.guest(initrd).guest(greedy).start()?;
    host.beats(GOOD, 1)?;
    let cases: [(&str, &[&str]); 3] = [
        ("text", &["kernel.txt"]),
        ("cramped", &["memory"]),
        ("greedy", &["4 GiB of memory", "give it less or the host more"]),
    ];
    for (name, parts) in cases {
        let reason = host.failure(name)?;
        ensure!(parts.iter().all(|part| reason.contains(part)), "{name}: {reason}");
        host.logs(&[name, &reason])?;
    }
    host.beats(GOOD, 5)?;
    host.seen.no_heartbeat_is_missing(GOOD)?;
    ensure!(host.vm(GOOD)?.state == VmState::Running, "{}", host.seen);
    host.powers_off()
}

fn impossible_options_are_named_and_ignored() -> Result<()> {
    let options = "loglevel=debug cpus=0 selftest=fire apic=x2apic quiet log";
    let mut host = Recipe::new().on(Emulator::System).options(options).hostile(BAD, "list")?.beating(GOOD)?.start()?;
    host.event(&wire::EventKind::VmDebugExit { name: BAD.into(), code: 0x10 })?;
    let complaints: [&[&str]; 5] = [
        &["loglevel=debug", "unknown and ignored"],
        &["cpus=0 is ignored", "takes all or a number from 1"],
        &["selftest=fire is ignored", "built without fault points", "baton-faults.elf"],
        &["quiet is unknown and ignored"],
        &["log is ignored, it lacks its value"],
    ];
    for parts in complaints {
        host.logs(parts)?;
    }
    host.beats(GOOD, 5)?;
    host.seen.no_heartbeat_is_missing(GOOD)?;
    ensure!(built("baton.elf").is_ok() && host.client()?.info()?.cpus == 2, "{}", host.seen);
    host.powers_off()
}
