// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that are saved in a file, and go on from there: on the same host, on another image of it, on another host.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::save::{restore, save};
use baton::saved::{HEAD_BYTES, Head};
use baton::size::Size;
use bundle::NetworkConfig;
use e2e::dmesg;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder, tiny};
use e2e::stock;
use wire::{EventKind, RefusalCode, RequestBody, UploadKind, VmSettings, VmState};

use super::Rule;
use super::networks::{CLIENT, DRIVERS, SERVER, nic, port_of, start};

pub const RULES: &[Rule] = &[
    ("a_guest_goes_on_where_it_was_saved", a_guest_goes_on_where_it_was_saved),
    ("a_guest_with_memory_on_demand_goes_on_with_all_of_it", on_demand_before),
    ("a_guest_that_is_saved_and_resumed_notices_nothing", a_saved_guest_is_resumed),
    ("a_guest_that_goes_on_is_announced_on_its_networks", a_guest_is_announced),
    ("what_cannot_go_on_is_refused_with_the_reason", what_cannot_go_on_is_refused),
];

pub const LONG_RULES: &[Rule] = &[
    ("a_linux_that_was_saved_goes_on_on_another_host", a_linux_goes_on_on_another_host),
    ("a_linux_of_6_1_keeps_its_connection_while_it_is_saved", || keeps_its_connection(Kernel::V6_1)),
    ("a_linux_of_6_12_keeps_its_connection_while_it_is_saved", || keeps_its_connection(Kernel::V6_12)),
];

/// Linux boots, and the line carries much memory, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(900);
/// The other end of a connection waits for hours. Linux gives up after 15 minutes (its ip-sysctl.rst, `tcp_retries2`),
/// and on a machine with other work a guest of 256 MiB may be on the emulated line for longer.
const PATIENT: &str = " sysctl.net.ipv4.tcp_retries2=60";
const A: &str = "a";
const B: &str = "b";

fn named(name: &str) -> String {
    name.to_owned()
}

fn save_to(host: &mut Host, name: &str, path: &Path, resumes: bool) -> Result<()> {
    let saved = save(&mut host.client()?, name, path, resumes, |_, _| {}, &|| false)?;
    ensure!(saved.fetched_bytes > 0 && saved.fetched_bytes < saved.memory_bytes, "{saved:?}");
    host.catch_up();
    Ok(())
}

fn restore_from(host: &mut Host, path: &Path, name: Option<&str>) -> Result<()> {
    let restored = restore(&mut host.client()?, path, name, |_, _| {});
    host.catch_up();
    restored.map(drop)
}

/// Not one heartbeat is missing or comes twice.
fn is_unbroken(host: &Host, name: &str) -> Result<()> {
    let beats = host.seen.heartbeats(name);
    ensure!(beats.iter().copied().eq(0..beats.len() as u64), "{name} was interrupted: {beats:?}");
    Ok(())
}

/// It is saved, stopped and deleted, the image replaced; then it goes on.
fn a_guest_goes_on_where_it_was_saved() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    let two = Guest { vcpus: 2, ..tiny(A, "keeper", "do=beat")? };
    let mut host = Recipe::new().guest(two).beating(B)?.start()?;
    host.beats(A, 5)?;
    let free = host.client()?.info()?.memory_free_bytes;
    save_to(&mut host, A, &path, false)?;
    host.state(A, VmState::Stopped)?;
    host.order(RequestBody::VmDelete { name: named(A) })?;
    host.beats(B, 5)?;
    host.update_to(2)?;
    restore_from(&mut host, &path, None)?;
    host.event(&EventKind::VmCreated { name: named(A) })?;
    host.beats(A, 10)?;
    let left = host.client()?.info()?.memory_free_bytes;
    ensure!(left.abs_diff(free) < 8 << 20, "{free} bytes were free, and {left} are");
    // It is a guest as any other one: it goes on in the next image, too.
    host.update_to(3)?;
    host.beats(A, 5)?;
    host.beats(B, 5)?;
    is_unbroken(&host, A)?;
    is_unbroken(&host, B)?;
    host.powers_off()
}

/// All of it is there in one piece, since it comes from a file, also in the next image.
fn on_demand_before() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    let keeper = tiny(A, "keeper", "do=beat")?;
    let most = Size::mebibytes(64);
    let on_demand = Guest { memory: Size::mebibytes(2), memory_max: Some(most), ..keeper };
    let mut host = Recipe::new().guest(on_demand).beating(B)?.start()?;
    host.beats(A, 5)?;
    let had = host.vm(A)?.resident_bytes.context("its memory is not on demand")?;
    ensure!(had < most.bytes / 2, "it has {had} bytes");
    save_to(&mut host, A, &path, false)?;
    host.state(A, VmState::Stopped)?;
    host.order(RequestBody::VmDelete { name: named(A) })?;
    restore_from(&mut host, &path, None)?;
    for generation in 2..=3 {
        host.beats(A, 5)?;
        let vm = host.vm(A)?;
        ensure!((vm.memory_bytes, vm.resident_bytes) == (most.bytes, None), "{vm:?}");
        host.update_to(generation)?;
    }
    host.beats(A, 5)?;
    is_unbroken(&host, A)?;
    host.powers_off()
}

/// By a frame of the host's: the guest itself never sends any.
fn a_guest_is_announced() -> Result<()> {
    const BYTES: u64 = 60;
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    let silent = Guest { nics: vec![nic(2)], ..tiny(A, "keeper", "do=beat")? };
    let server = stock::guest(folder.path(), SERVER, Kernel::Default, DRIVERS, "serve:10.9.0.1:7")?;
    let server = Guest { nics: vec![nic(1)], ..server };
    let lan = NetworkConfig { name: "lan".to_owned(), mtu: 1500 };
    let recipe = Recipe::new().guest(silent).guest(server).beating(B)?;
    let mut host = Recipe { networks: vec![lan], ..recipe }.start()?;
    host.guest_prints(SERVER, " listens")?;
    host.beats(A, 2)?;
    let before = port_of(&mut host, SERVER)?.received;
    ensure!(before.frames == 0, "{before:?}");
    save_to(&mut host, A, &path, false)?;
    host.state(A, VmState::Stopped)?;
    host.order(RequestBody::VmDelete { name: named(A) })?;
    restore_from(&mut host, &path, None)?;
    host.beats(A, 2)?;
    let after = port_of(&mut host, SERVER)?.received;
    ensure!((after.frames, after.bytes) == (1, BYTES), "{after:?}");
    host.powers_off()
}

fn a_saved_guest_is_resumed() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    let mut host = Recipe::new().beating(A)?.beating(B)?.start()?;
    host.beats(A, 5)?;
    for _ in 0..2 {
        save_to(&mut host, A, &path, true)?;
        host.beats(A, 5)?;
    }
    is_unbroken(&host, A)?;
    // One that was paused stays paused.
    host.order(RequestBody::VmPause { name: named(A) })?;
    host.state(A, VmState::Paused)?;
    save_to(&mut host, A, &path, true)?;
    ensure!(host.vm(A)?.state == VmState::Paused, "it is not paused any more");
    host.order(RequestBody::VmResume { name: named(A) })?;
    host.beats(A, 5)?;
    host.beats(B, 5)?;
    is_unbroken(&host, A)?;
    is_unbroken(&host, B)?;
    host.powers_off()
}

/// Each wrong one is named, the guest stays as it was, and goes on from the right one.
fn what_cannot_go_on_is_refused() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    // Its memory is sent again and again.
    let small = Guest { memory: Size { bytes: 4 << 20 }, ..tiny(A, "keeper", "do=beat")? };
    let mut host = Recipe::new().guest(small).beating(B)?.start()?;
    host.beats(A, 5)?;
    let refusal = host.refusal(RequestBody::VmSaved { name: named(A), from_byte: 0 })?;
    ensure!(refusal.reason.contains("does not stand still"), "{refusal}");
    save_to(&mut host, A, &path, false)?;
    host.state(A, VmState::Stopped)?;
    let file = fs::File::open(&path)?;
    let head = Head::read(&file, &path)?;
    let (state, memory) = (head.state.sha256.clone(), vec![head.memory[0].sha256.clone()]);
    let order = |name: &str, state: &str, memory: &[String]| RequestBody::VmRestore {
        name: named(name),
        state: named(state),
        memory: memory.to_vec(),
    };
    let refuses = |host: &mut Host, body, code, reason: &str| {
        let refusal = host.refusal(body)?;
        ensure!(refusal.code == code && refusal.reason.contains(reason), "{refusal:?}, not {reason:?}");
        anyhow::Ok(())
    };
    refuses(&mut host, order(B, &state, &memory), RefusalCode::WrongState, "'b' is running")?;
    refuses(&mut host, order(A, &state, &memory), RefusalCode::Invalid, "its state is not there")?;
    host.upload(UploadKind::File, &head.state.read(&file)?)?;
    refuses(&mut host, order(A, &state, &memory), RefusalCode::WrongState, "its memory is not there")?;
    refuses(&mut host, order(A, &state, &[]), RefusalCode::Invalid, "has 1 pieces of memory, not 0")?;
    refuses(&mut host, order(A, &state, &[named("a5")]), RefusalCode::Invalid, "by no SHA-256")?;
    let odd = RequestBody::UploadBegin { kind: UploadKind::Memory, bytes: 4096, sha256: [1; 32] };
    refuses(&mut host, odd, RefusalCode::Invalid, "4096 bytes are no guest's memory")?;
    host.order(RequestBody::FileRemove { name: state })?;
    are_failures(&mut host, &path, &head)?;
    let vcpus = |vcpus| VmSettings { vcpus: Some(vcpus), ..VmSettings::default() };
    host.order(RequestBody::VmSet { name: named(A), settings: vcpus(2) })?;
    fails(&mut host, &path, "it was saved with 1 vCPUs and")?;
    host.order(RequestBody::VmSet { name: named(A), settings: vcpus(1) })?;
    restore_from(&mut host, &path, None)?;
    host.beats(A, 5)?;
    host.beats(B, 5)?;
    is_unbroken(&host, A)?;
    is_unbroken(&host, B)?;
    host.powers_off()
}

/// The guest fails with this in its reason.
fn fails(host: &mut Host, path: &Path, reason: &str) -> Result<()> {
    let error = restore_from(host, path, None).err().context("it has gone on")?.to_string();
    ensure!(error.contains(reason), "{error}, not {reason:?}");
    host.state(A, VmState::Failed).map(drop)
}

/// A change of a state.
type Change = fn(&mut Vec<u8>);

/// States that are damaged although their SHA-256 is right: each block has sums of its own, and its fields are checked.
fn are_failures(host: &mut Host, path: &Path, head: &Head) -> Result<()> {
    let whole = fs::read(path)?;
    let (from, to) = (HEAD_BYTES as usize, HEAD_BYTES as usize + head.state.bytes as usize);
    let changes: [(Change, &str); 4] = [
        (|state| state[0] ^= 1, "(Saved): it was never finished"),
        (|state| state[60] ^= 1, "(Saved): its sum is wrong"),
        (|state| state.truncate(4096), "(Policy): it was never finished"),
        (|state| state.truncate(state.len() - 8), "(Devices): it was never finished"),
    ];
    for (change, reason) in changes {
        let mut state = whole[from..to].to_vec();
        change(&mut state);
        let file = fs::File::options().read(true).write(true).open(path)?;
        file.write_all_at(&state, HEAD_BYTES)?;
        let state = baton::saved::Part::of(&file, HEAD_BYTES, state.len() as u64)?;
        Head { state, ..head.clone() }.write(&file)?;
        fails(host, path, reason)?;
        fs::write(path, &whole)?;
    }
    Ok(())
}

/// The first host is gone when the guest goes on: to it no time has passed.
fn a_linux_goes_on_on_another_host() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("a.saved");
    let recipe = Recipe::new().linux(A, "heartbeat:100")?;
    let mut recipe = recipe.beating(B)?;
    recipe.guests[0].vcpus = 2;
    let mut host = recipe.start()?;
    host.limit(LIMIT);
    host.beats(A, 10)?;
    save_to(&mut host, A, &path, false)?;
    host.state(A, VmState::Stopped)?;
    let last = *host.seen.heartbeats(A).last().context("it has beaten")?;
    host.powers_off()?;
    recipe.guests[0].autostart = false;
    let mut host = recipe.start()?;
    host.limit(LIMIT);
    host.beats(B, 5)?;
    restore_from(&mut host, &path, None)?;
    host.beats(A, 20)?;
    let beats = host.seen.heartbeats(A);
    // Its last output may have been on its way to the first host when it was saved.
    ensure!((last + 1..last + 3).contains(&beats[0]), "after {last} it goes on with {beats:?}");
    ensure!(beats.windows(2).all(|pair| pair[1] == pair[0] + 1), "{beats:?}");
    let console = host.seen.console(A);
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "{complaints:#?}");
    host.powers_off()
}

/// The other end of its TCP connection runs on meanwhile, and waits for it.
fn keeps_its_connection(kernel: Kernel) -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("client.saved");
    let mut host = start(kernel, "stream:10.9.0.2:10.9.0.1:9,echo:10.9.0.1:7", PATIENT)?;
    host.limit(LIMIT);
    host.guest_prints(CLIENT, "echo 0 ")?;
    save_to(&mut host, CLIENT, &path, false)?;
    host.state(CLIENT, VmState::Stopped)?;
    restore_from(&mut host, &path, None)?;
    for _ in 0..3 {
        host.guest_prints(CLIENT, "echo ")?;
    }
    for name in [SERVER, CLIENT] {
        let console = host.seen.console(name);
        ensure!(!["WRONG", "reset by peer", "timed out"].iter().any(|word| console.contains(word)), "{console}");
    }
    host.powers_off()
}
