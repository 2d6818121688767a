// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients in guests that reach the host's control channel over virtio sockets: the tool itself, in stock Linux.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::{Control, Guest};
use baton::keys;
use bundle::{ControlKeyConfig, ControlRights, ControlRole, GuestControl, VsockConfig};
use e2e::guest_tool;
use e2e::host::Host;
use e2e::place::{Build, Kernel};
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use e2e::transcript::Transcript;
use wire::RequestBody;

use super::Rule;

pub const RULES: &[Rule] = &[("a_client_in_a_guest_updates_the_host_and_its_session_goes_on", updates_and_goes_on)];

pub const LONG_RULES: &[Rule] = &[
    ("clients_in_a_guest_follow_the_host_across_twenty_updates", follows_across_updates),
    ("a_client_in_a_guest_sends_an_image_while_another_reads_nothing", sends_an_image),
    ("clients_in_a_guest_are_bounded", is_bounded),
];

const SERVICES: &str = "services";
const OTHER: &str = "other";
const DRIVERS: &[&str] = &["virtio_pci", "vmw_vsock_virtio_transport"];
const STOPPED: &str = "other stopped: stopped by the operator";
/// Two guests boot, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(600);

/// A guest with the tool and these files, which may control the host so.
fn services(
    folder: &Path,
    role: ControlRole,
    rights: ControlRights,
    script: &str,
    files: &[(&str, &Path)],
) -> Result<Guest> {
    let guest = guest_tool::guest(folder, SERVICES, DRIVERS, script, files)?;
    let control = Some(GuestControl { role, rights });
    Ok(Guest { vsock: Some(VsockConfig { cid: 3, peers: Vec::new(), control }), ..guest })
}

/// A guest that has sockets and may not.
fn other(folder: &Path) -> Result<Guest> {
    let guest = stock::guest(folder, OTHER, Kernel::Default, DRIVERS, "vsock-crowd:2:9910:1,heartbeat:100")?;
    Ok(Guest { vsock: Some(VsockConfig { cid: 4, peers: Vec::new(), control: None }), ..guest })
}

fn start(role: ControlRole, rights: ControlRights, script: &str) -> Result<Host> {
    start_with(role, rights, script, &[], Control::default())
}

/// The same with control keys; the guest has these files in its root folder.
fn start_with(
    role: ControlRole,
    rights: ControlRights,
    script: &str,
    files: &[(&str, &Path)],
    control: Control,
) -> Result<Host> {
    let (own, others) = (folder()?, folder()?);
    let services = services(own.path(), role, rights, script, files)?;
    let recipe = Recipe { control, ..Recipe::new().cpus(2).memory_mib(1536) };
    let mut host = recipe.guest(services).guest(other(others.path())?).start()?;
    host.limit(LIMIT);
    Ok(host)
}

/// A client follows the events while another one asks for an update: both sessions go on in the next image.
fn updates_and_goes_on() -> Result<()> {
    let script = "
        baton info && echo 'script: informed'
        baton vm pause other && baton vm resume other && echo 'script: ordered'
        baton vm dump other -o /dump || echo \"script: dump ended with $?\"
        baton events -f | while read -r line; do echo \"event: $line\"; done &
        baton update && echo 'script: updated'
        baton vm stop --yes other && echo 'script: stopped'
    ";
    let mut host = start(ControlRole::Update, ControlRights::default(), script)?;
    host.guest_prints(OTHER, "crowd: vsock 2:9910: open=0 refused=1 reason=Connection reset")?;
    for done in ["informed", "ordered", "dump ended with", "updated", "stopped"] {
        host.guest_prints(SERVICES, &format!("script: {done}"))?;
    }
    // The client began to follow before the update, with the oldest events that are kept.
    host.wait("the last event in the guest", |seen| is_followed(&seen.console(SERVICES), STOPPED))?;
    let console = host.seen.console(SERVICES);
    for event in ["host ready", "other resumed", "host updated to generation 2"] {
        ensure!(is_followed(&console, event), "no event {event:?}: {console}");
    }
    ensure!(console.contains("do not have the right dump"), "{console}");
    host.powers_off()
}

/// Returns whether a client in the guest has shown this event, once.
fn is_followed(console: &str, event: &str) -> bool {
    console.lines().filter(|line| line.starts_with("event: ") && line.trim_end().ends_with(event)).count() == 1
}

/// Events of two clients arrive once each, whatever is replaced.
fn follows_across_updates() -> Result<()> {
    let script = "
        baton events -f | while read -r line; do echo \"event: $line\"; done &
        baton log -f | while read -r line; do echo \"log: $line\"; done &
        for update in $(seq 20); do baton update || echo \"script: update ended with $?\"; done
        echo 'script: updated'
    ";
    let mut host = start(ControlRole::Update, ControlRights::default(), script)?;
    host.guest_prints(SERVICES, "script: updated")?;
    let is_there = |seen: &Transcript, generation| {
        let console = seen.console(SERVICES);
        let logged = console.lines().filter(|line| line.starts_with("log: "));
        let named = format!("host updated to generation {generation}");
        is_followed(&console, &named) && logged.filter(|line| line.trim_end().ends_with(&named)).count() == 1
    };
    for generation in 2..=21 {
        host.wait(&format!("generation {generation}"), |seen| is_there(seen, generation))?;
    }
    host.beats(OTHER, 20)?;
    host.powers_off()
}

/// An image is sent, and replaces the one that runs. One of the clients reads nothing, which delays nothing.
fn sends_an_image() -> Result<()> {
    let script = "
        baton log -f > /log &
        sleep 1; kill -STOP $!
        sleep 2
        time baton update --image /image --dry-run && echo 'script: sent'
        time baton update --image /image && echo 'script: updated'
        baton events | tail -n 3
    ";
    let image = Build::Shipped.file()?;
    let files = [("image", image.as_path())];
    let mut host = start_with(ControlRole::Update, ControlRights::default(), script, &files, Control::default())?;
    host.guest_prints(SERVICES, "script: updated")?;
    host.guest_prints(SERVICES, "script: done")?;
    let console = host.seen.console(SERVICES);
    for line in console.lines().filter(|line| ["real", "user"].iter().any(|time| line.starts_with(time))) {
        println!("an image is sent, and rehearsed or taken: {line}");
    }
    host.beats(OTHER, 20)?;
    host.powers_off()
}

/// A role that is too low, too many connections, and a guest that is reset in the middle of one: named, and nothing
/// else is disturbed. The host has a control key, which the guest's clients need, and takes unsigned requests over its
/// serial line: the lab's are such.
fn is_bounded() -> Result<()> {
    let script = "
        chmod 600 /key
        baton info || echo \"script: unsigned ended with $?\"
        export BATON_KEY=/key
        baton info && echo 'script: informed'
        baton vm stop --yes other || echo \"script: stop ended with $?\"
        for client in 1 2 3 4; do baton events -f | while read -r line; do echo \"event: $line\"; done & done
        sleep 3
        baton info || echo \"script: the fifth ended with $?\"
    ";
    let folder = folder()?;
    let key = folder.path().join("key");
    let (public, _) = keys::generate(&key)?;
    let ops = ControlKeyConfig { name: "ops".to_owned(), key: public.bytes(), role: ControlRole::Update };
    let control = Control { keys: vec![ops], is_serial_open: true };
    let mut host = start_with(ControlRole::Read, ControlRights::default(), script, &[("key", key.as_path())], control)?;
    for done in ["unsigned ended with", "informed", "stop ended with", "the fifth ended with", "done"] {
        host.guest_prints(SERVICES, &format!("script: {done}"))?;
    }
    let console = host.seen.console(SERVICES);
    for refusal in ["takes signed requests only", "have the role read, and this takes operate"] {
        ensure!(console.contains(refusal), "no {refusal:?}: {console}");
    }
    host.client()?.request(RequestBody::VmReset { name: SERVICES.to_owned() })?;
    host.guest_prints(SERVICES, "script: the fifth ended with")?;
    host.update_to(2)?;
    host.beats(OTHER, 20)?;
    host.powers_off()
}
