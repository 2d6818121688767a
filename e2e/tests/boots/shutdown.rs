// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power button: stock Linux that shuts down, one that ignores it, and a press that no guest has seen.

use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use baton::config::{Guest, Image};
use e2e::dmesg;
use e2e::host::Host;
use e2e::old_image;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder, tiny};
use e2e::stock;
use e2e::tool::PLAYS_TOOL;
use handover::state::DeviceKind;
use wire::{EventKind, RequestBody, UpdateBy, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("linux_shuts_down_by_its_power_button_and_is_stopped_where_it_ignores_that", linux_shuts_down_or_is_stopped),
    ("a_press_that_a_guest_has_not_seen_is_handed_over", a_press_is_handed_over),
];

const OBEYS: &str = "obeys";
const IGNORES: &str = "ignores";
const BEATS: &str = "beats";
const DRIVERS: &[&str] = &["button", "evdev"];

/// After an update, so that the next image's button is pressed.
fn linux_shuts_down_or_is_stopped() -> Result<()> {
    let folder = folder()?;
    let guest = |name: &str, tasks: &str| stock::guest(folder.path(), name, Kernel::V6_12, DRIVERS, tasks);
    let obeys = guest(OBEYS, "power-key,wait")?;
    let mut host = Recipe::new().guest(obeys).guest(guest(IGNORES, "power-key:ignore,wait")?).start()?;
    for name in [OBEYS, IGNORES] {
        host.guest_prints(name, "power key: 1 devices")?;
    }
    host.update_to(2)?;
    let shutdown = tool(&mut host, &["vm", "shutdown", "--yes", "--timeout", "10", OBEYS, IGNORES])?;
    let text = String::from_utf8_lossy(&shutdown.stdout);
    ensure!(shutdown.status.success(), "{shutdown:?}");
    ensure!(text.contains("obeys shut down (powered off; "), "{text}");
    let stopped = "ignores stopped: it did not shut down within 10 s (stopped by the operator; ";
    ensure!(text.contains(stopped), "{text}");
    host.guest_prints(OBEYS, "power key: pressed")?;
    host.guest_prints(IGNORES, "power key: pressed, and ignored")?;
    host.event(&EventKind::VmStopped { name: OBEYS.to_owned(), reason: "powered off".to_owned() })?;
    let waited = tool(&mut host, &["vm", "wait", OBEYS, IGNORES])?;
    ensure!(waited.status.success() && waited.stdout.starts_with(b"obeys ended (powered off; "), "{waited:?}");
    for name in [OBEYS, IGNORES] {
        let console = host.seen.console(name);
        ensure!(!console.contains("WRONG"), "{console}");
        let complaints = dmesg::suspicious(&console);
        ensure!(complaints.is_empty(), "{name} complains: {complaints:#?}");
    }
    host.powers_off()
}

/// The guest has no driver. To an image that knows no power button it does not go while it is to see a press.
fn a_press_is_handed_over() -> Result<()> {
    let folder = folder()?;
    let old = folder.path().join("old.elf");
    std::fs::write(&old, old_image::knowing_devices_up_to(DeviceKind::SriovFunction)?)?;
    let beats = Guest { debug_exit: false, ..tiny(BEATS, "keeper", "do=beat")? };
    let mut host = Recipe { image: Image::File(old), ..Recipe::new().guest(beats) }.start()?;
    host.beats(BEATS, 1)?;
    let update = || RequestBody::Update { is_dry_run: true, by: UpdateBy::Bundle };
    host.client()?.request(update()).context("a button that is not pressed is no reason")?;
    host.order(RequestBody::VmShutdown { name: BEATS.to_owned() })?;
    let refusal = host.refusal(update())?.to_string();
    ensure!(refusal.contains("guest 'beats': it has a device that the image does not know"), "{refusal}");
    host.beats(BEATS, 3)?;
    host.state(BEATS, VmState::Running)?;
    host.order(RequestBody::VmPause { name: BEATS.to_owned() })?;
    host.state(BEATS, VmState::Paused)?;
    let refusal = host.refusal(RequestBody::VmShutdown { name: BEATS.to_owned() })?.to_string();
    ensure!(refusal.contains("guest 'beats' is paused"), "{refusal}");
    host.powers_off()
}

/// Runs the tool against the host to its end, while the host is listened to.
fn tool(host: &mut Host, arguments: &[&str]) -> Result<Output> {
    let address = format!("unix:{}", host.control_socket().display());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--connect", &address]).args(arguments).env(PLAYS_TOOL, "1");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    Ok(child.wait_with_output()?)
}
