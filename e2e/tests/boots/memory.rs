// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who owns which memory: every policy, machines of many sizes and shapes, what guests leave behind.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::Guest;
use baton::lab::Ending;
use baton::size::Size;
use e2e::host::Host;
use e2e::recipe::{Recipe, folder, tiny};
use wire::{EventKind, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_record_for_each_frame_written_at_boot", || boots_linux("frames=eager hvo=off")),
    ("a_record_for_each_frame_but_tails_of_huge_ones", || boots_linux("frames=eager hvo=on huge-frames=2M:160")),
    ("records_are_written_once_guests_run", records_are_written_once_guests_run),
    ("extents_without_records", || boots_linux("frames=extents")),
    ("a_machine_of_512_gib_boots", a_machine_of_512_gib_boots),
    ("a_guest_gets_huge_frames_that_were_set_aside", a_guest_gets_huge_frames_that_were_set_aside),
    ("more_huge_frames_than_there_are_is_said_and_the_host_goes_on", more_huge_frames_than_there_are),
    ("damaged_memory_is_not_used", damaged_memory_is_not_used),
    ("a_machine_check_ends_the_host_and_names_the_damaged_memory", a_machine_check_names_the_damaged_memory),
    ("memory_is_on_two_nodes", memory_is_on_two_nodes),
    ("a_table_of_nodes_that_contradicts_the_memory_map_is_named", a_contradictory_table_of_nodes_is_named),
    ("a_guest_in_scrubbed_memory_finds_nothing_and_waits_for_no_zeroing", a_guest_in_scrubbed_memory_finds_nothing),
];

const GUEST: &str = "debian";

fn linux(options: &str) -> Result<Recipe> {
    Recipe::new().options(&format!("log=debug {options}")).powers_off().linux(GUEST, "poweroff")
}

fn ends_well(host: &mut Host) -> Result<()> {
    host.greets(GUEST)?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn boots_linux(options: &str) -> Result<()> {
    let mut host = linux(options)?.start()?;
    host.says(&["bytes of metadata before the first guest"])?;
    ends_well(&mut host)
}

fn records_are_written_once_guests_run() -> Result<()> {
    let mut host = linux("frames=deferred")?.start()?;
    host.says(&["bytes of metadata before the first guest"])?;
    host.says(&["bytes of records are written"])?;
    ends_well(&mut host)
}

/// The emulator's memory, taken from the machine below only where it is touched.
fn reserved_lazily(memory: Size) -> Vec<OsString> {
    let backend = format!("memory-backend-ram,id=ram,size={},reserve=off", memory.bytes);
    ["-object", &backend, "-machine", "memory-backend=ram"].map(Into::into).to_vec()
}

fn a_machine_of_512_gib_boots() -> Result<()> {
    let memory = Size::mebibytes(512 << 10);
    let recipe = Recipe { memory, ..linux("")?.with(reserved_lazily(memory)) };
    let mut host = recipe.start()?;
    let info = host.client()?.info()?;
    ensure!(info.memory_total_bytes > 511 << 30, "{info:?}");
    ends_well(&mut host)
}

fn a_guest_gets_huge_frames_that_were_set_aside() -> Result<()> {
    let mut host = linux("huge-frames=2M:128")?.start()?;
    host.says(&["128 huge frames of 2 MiB are set aside"])?;
    ends_well(&mut host)
}

fn more_huge_frames_than_there_are() -> Result<()> {
    let mut host = linux("huge-frames=1G:500,2M:100")?.start()?;
    host.says(&["option huge-frames", "of 500 huge frames of 1 GiB"])?;
    host.says(&["100 huge frames of 2 MiB are set aside"])?;
    ends_well(&mut host)
}

fn damaged_memory_is_not_used() -> Result<()> {
    let whole = linux("")?.start()?.client()?.info()?.memory_free_bytes;
    let mut host = linux("bad-memory=0x20000000-0x2fffffff,0x123456789000 guests=none")?.start()?;
    host.says(&["memory 0x20000000-0x2fffffff (256 MiB) is damaged: 256 MiB are not used"])?;
    host.says(&["option bad-memory", "0x123456789000", "is no usable memory"])?;
    let free = host.client()?.info()?.memory_free_bytes;
    ensure!(free < whole + (256 << 20), "the whole machine had {whole}, this one has {free}");
    host.order(RequestBody::VmStart { name: GUEST.to_owned() })?;
    ends_well(&mut host)
}

/// The emulator's monitor gives processor 0 an uncorrected error with an address.
fn a_machine_check_names_the_damaged_memory() -> Result<()> {
    let folder = folder()?;
    let socket = folder.path().join("monitor");
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    let mut host = Recipe::new().with(["-monitor".into(), monitor.into()]).start()?;
    host.is_ready()?;
    // The monitor obeys as long as the connection is there.
    let mut monitor = UnixStream::connect(&socket)?;
    monitor.write_all(b"mce 0 9 0xbe00000000000000 0x5 0x20001000 0x0\n")?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    ensure!(host.seen.host_said(&["exception 18", "processor 0"]), "{}", host.seen);
    ensure!(
        host.seen.host_said(&["memory at 0x20001000 is damaged: start the host with bad-memory=0x20001000"]),
        "{}",
        host.seen
    );
    Ok(())
}

fn memory_is_on_two_nodes() -> Result<()> {
    let numa = "-object memory-backend-ram,id=a,size=512M -object memory-backend-ram,id=b,size=512M \
                -numa node,nodeid=0,memdev=a,cpus=0 -numa node,nodeid=1,memdev=b,cpus=1";
    let mut host =
        linux("")?.with(numa.split(' ').filter(|word| !word.is_empty()).map(Into::into).collect::<Vec<_>>()).start()?;
    host.says(&["2 NUMA nodes"])?;
    ensure!(!host.seen.host_said(&["NUMA nodes: "]), "nothing contradicts: {}", host.seen);
    ends_well(&mut host)
}

/// A table in which two nodes claim the first 512 MiB, one of them memory that is not there, and nobody the rest.
fn a_contradictory_table_of_nodes_is_named() -> Result<()> {
    let folder = folder()?;
    let file = folder.path().join("srat");
    let entry = |domain: u32, base: u64, bytes: u64| {
        [
            &[1, 40][..],
            &domain.to_le_bytes(),
            &[0; 2],
            &base.to_le_bytes(),
            &bytes.to_le_bytes(),
            &[0; 4],
            &[1, 0, 0, 0],
            &[0; 8],
        ]
        .concat()
    };
    let entries = [entry(0, 0, 512 << 20), entry(1, 256 << 20, 256 << 20), entry(1, 1 << 40, 1 << 30)];
    fs::write(&file, [&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &entries.concat()].concat())?;
    let table = format!("sig=SRAT,rev=3,data={}", file.display());
    let mut host = linux("")?.with(["-acpitable".into(), table.into()]).start()?;
    host.says(&["NUMA nodes: memory", "is said to be on nodes 0 and 1: it counts as node 0's"])?;
    host.says(&["said to be on node 1, is not in the memory map: ignored"])?;
    host.says(&["is on no node"])?;
    ends_well(&mut host)
}

fn a_guest_in_scrubbed_memory_finds_nothing() -> Result<()> {
    let waiting = |name, seed| {
        let guest = tiny(name, "keeper", &format!("seed={seed} do=fresh,stain"))?;
        anyhow::Ok(Guest { autostart: false, ..guest })
    };
    let recipe = Recipe::new().options("log=debug").guest(waiting("a", 1)?).guest(waiting("b", 2)?);
    let mut host = recipe.start()?;
    host.is_ready()?;
    for (name, cleared) in [("a", "16 MiB"), ("b", "0 bytes")] {
        host.order(RequestBody::VmStart { name: name.to_owned() })?;
        host.says(&["16 MiB for a guest", &format!("{cleared} of it cleared")])?;
        host.guest_says(name, "keeper: fresh: ok")?;
        host.guest_says(name, "keeper: stain: ok")?;
        host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: 0x10 })?;
        host.state(name, VmState::Stopped)?;
        host.listen(Duration::from_secs(1));
    }
    host.powers_off()
}
