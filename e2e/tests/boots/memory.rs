// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ownership of memory: every policy, machines of many sizes and shapes, memory that guests leave behind.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use e2e::host::Host;
use e2e::recipe::{Recipe, folder, tiny};
use lab::Ending;
use wire::{EventKind, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("each_policy_writes_its_records_when_it_is_to", each_policy_writes_its_records_when_it_is_to),
    ("what_only_the_boot_needs_is_given_back", boot_memory_is_given_back),
    ("a_machine_of_512_gib_boots", a_machine_of_512_gib_boots),
    ("a_guest_gets_huge_frames_that_were_set_aside", a_guest_gets_huge_frames_that_were_set_aside),
    ("more_huge_frames_than_there_are_is_logged_and_the_host_goes_on", more_huge_frames_than_there_are),
    ("damaged_memory_is_not_used", damaged_memory_is_not_used),
    ("memory_is_on_two_nodes", memory_is_on_two_nodes),
    ("a_table_of_nodes_that_contradicts_the_memory_map_is_named", a_contradictory_table_of_nodes_is_named),
    ("a_guest_in_scrubbed_memory_finds_nothing_and_waits_for_no_zeroing", a_guest_in_scrubbed_memory_finds_nothing),
];

const GUEST: &str = "guest";

fn recipe(options: &str) -> Result<Recipe> {
    Recipe::new().options(&format!("log=debug {options}")).powers_off().greeting(GUEST)
}

fn ends_well(host: &mut Host) -> Result<()> {
    host.greets(GUEST)?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn boot_memory_is_given_back() -> Result<()> {
    let mut host = recipe("")?.start()?;
    ends_well(&mut host)?;
    let lines =
        host.seen.host.iter().filter(|line| line.contains("(140 KiB) was only needed to boot: it is free")).count();
    ensure!(lines == 1, "{}", host.seen);
    Ok(())
}

/// Bytes written to frame records on a machine of 1 GiB.
#[derive(Debug)]
struct Written {
    at_boot: u64,
    /// In all, before the first guest's first instruction.
    before_guests: u64,
    /// In all records, where that is not before guests run.
    once_guests_run: Option<u64>,
}

/// At least so much are the records of all usable memory of that machine: 64 bytes for each 4 KiB.
const RECORDS_BYTES: u64 = 1000 << 20 >> 12 << 6;
/// At least so much are those of the tails of 160 huge frames of 2 MiB.
const TAILS_BYTES: u64 = 160 * 500 * 64;

fn written(options: &str) -> Result<Written> {
    const LATER: &str = " bytes of records are written";
    let mut host = recipe(options)?.start()?;
    if options.contains("deferred") {
        host.logs(&[LATER])?;
    }
    ends_well(&mut host)?;
    let number = |part: &str| {
        let line = host.seen.host.iter().find_map(|line| line.split_once(part))?.0;
        line.rsplit(' ').next()?.parse().ok()
    };
    let (at_boot, before_guests) = (number(" bytes in "), number(" bytes of metadata before the first guest"));
    let (at_boot, before_guests) = at_boot.zip(before_guests).with_context(|| host.seen.to_string())?;
    Ok(Written { at_boot, before_guests, once_guests_run: number(LATER) })
}

/// A record for each frame at boot; for each but the tails of huge ones; those of frames that changed hands, and the
/// rest once guests run; or none.
fn each_policy_writes_its_records_when_it_is_to() -> Result<()> {
    let all = written("frames=eager hvo=off huge-frames=2M:160")?;
    let without_tails = written("frames=eager hvo=on huge-frames=2M:160")?;
    let later = written("frames=deferred hvo=off")?;
    let none = written("frames=extents")?;
    ensure!(all.at_boot > RECORDS_BYTES && all.once_guests_run.is_none(), "{all:?}");
    let tails = all.at_boot.saturating_sub(without_tails.at_boot);
    ensure!(tails > TAILS_BYTES && without_tails.at_boot > RECORDS_BYTES / 2, "{without_tails:?} of {all:?}");
    ensure!(later.at_boot < RECORDS_BYTES / 16 && later.before_guests < RECORDS_BYTES / 8, "{later:?}");
    ensure!(later.once_guests_run > Some(RECORDS_BYTES), "{later:?}");
    ensure!(none.before_guests < RECORDS_BYTES / 256 && none.once_guests_run.is_none(), "{none:?}");
    Ok(())
}

/// The emulator's memory, taken from the machine below only where it is touched.
fn reserved_lazily(memory: Size) -> Vec<OsString> {
    let backend = format!("memory-backend-ram,id=ram,size={},reserve=off", memory.bytes);
    ["-object", &backend, "-machine", "memory-backend=ram"].map(Into::into).to_vec()
}

fn a_machine_of_512_gib_boots() -> Result<()> {
    let memory = Size::mebibytes(512 << 10);
    let recipe = Recipe { memory, ..recipe("")?.with(reserved_lazily(memory)) };
    let mut host = recipe.start()?;
    let info = host.client()?.info()?;
    ensure!(info.memory_total_bytes > 511 << 30, "{info:?}");
    ends_well(&mut host)
}

fn a_guest_gets_huge_frames_that_were_set_aside() -> Result<()> {
    // More memory than is left beside those.
    let guest = Guest { memory: Size::mebibytes(96), ..tiny(GUEST, "keeper", "do=beat beats=1")? };
    let recipe = Recipe::new().memory_mib(256).options("huge-frames=2M:80").powers_off().guest(guest);
    let mut host = recipe.start()?;
    host.logs(&["80 huge frames of 2 MiB are set aside"])?;
    ends_well(&mut host)
}

fn more_huge_frames_than_there_are() -> Result<()> {
    let mut host = recipe("huge-frames=1G:500,2M:100")?.start()?;
    host.logs(&["option huge-frames", "of 500 huge frames of 1 GiB"])?;
    host.logs(&["100 huge frames of 2 MiB are set aside"])?;
    ends_well(&mut host)
}

fn damaged_memory_is_not_used() -> Result<()> {
    const DAMAGED: u64 = 256 << 20;
    /// Records and extents may be others.
    const TOLERANCE: u64 = 1 << 20;
    let whole = recipe("guests=none")?.start()?.client()?.info()?.memory_free_bytes;
    let mut host = recipe("bad-memory=0x20000000-0x2fffffff,0x123456789000 guests=none")?.start()?;
    host.logs(&["memory 0x20000000-0x2fffffff (256 MiB) is damaged: 256 MiB are not used"])?;
    host.logs(&["option bad-memory", "0x123456789000", "is no usable memory"])?;
    let free = host.client()?.info()?.memory_free_bytes;
    ensure!(whole.abs_diff(free + DAMAGED) < TOLERANCE, "the whole machine had {whole}, this one has {free}");
    host.order(RequestBody::VmStart { name: GUEST.to_owned() })?;
    ends_well(&mut host)
}

/// The emulator's monitor gives CPU 0 an uncorrected error with an address.
fn memory_is_on_two_nodes() -> Result<()> {
    let numa = "-object memory-backend-ram,id=a,size=512M -object memory-backend-ram,id=b,size=512M \
                -numa node,nodeid=0,memdev=a,cpus=0 -numa node,nodeid=1,memdev=b,cpus=1";
    let mut host = recipe("")?
        .with(numa.split(' ').filter(|word| !word.is_empty()).map(Into::into).collect::<Vec<_>>())
        .start()?;
    host.logs(&["2 NUMA nodes"])?;
    ensure!(!host.seen.host_logged(&["NUMA nodes: "]), "nothing contradicts: {}", host.seen);
    ends_well(&mut host)
}

/// A table in which two nodes claim the first 512 MiB, one of them memory that is not there, and no node the rest.
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
    let mut host = recipe("")?.with(["-acpitable".into(), table.into()]).start()?;
    host.logs(&["NUMA nodes: memory", "is on nodes 0 and 1 by the SRAT: it counts as node 0's"])?;
    host.logs(&["on node 1 by the SRAT, is not in the memory map: ignored"])?;
    host.logs(&["is on no node"])?;
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
        host.logs(&["16 MiB for a guest", &format!("{cleared} of it cleared")])?;
        host.guest_prints(name, "keeper: fresh: ok")?;
        host.guest_prints(name, "keeper: stain: ok")?;
        host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: 0x10 })?;
        host.state(name, VmState::Stopped)?;
        host.listen(Duration::from_secs(1));
    }
    host.powers_off()
}
