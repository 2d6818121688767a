// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events amid an update that the new image has no part in: clients die, guests panic.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::Guest;
use bundle::OnPanic;
use e2e::code;
use e2e::host::Host;
use e2e::place::built;
use e2e::recipe::{Recipe, folder, program, tiny};
use e2e::transcript::Transcript;
use seal::{Portable, Sha256};
use wire::{EventKind, MAX_UPLOAD_BYTES, ReplyBody, RequestBody, UpdateBy, UploadKind};

use super::beside::{refused_for_the_guest, update_beside};
use super::{A, ATTEMPTS, B, are_stained, both_go_on, send_image, two_keepers, update_by, watches_on};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("a_client_that_dies_at_any_step_of_an_update_harms_nothing", clients_die_while_it_is_made),
    ("a_client_that_dies_while_it_sends_an_image_leaves_room_for_the_next", a_client_dies_while_it_sends),
    ("a_guest_that_panics_at_any_moment_of_an_update_is_not_lost", guests_panic),
];

/// Moments at which a client dies, in milliseconds after its request; and by a line of the host's, once that has been
/// reported.
const MOMENTS: &[Moment] = &[
    Moment::Logged("whole ("),
    Moment::Later(100),
    Moment::Later(200),
    Moment::Later(400),
    Moment::Logged("the last one back"),
];

/// Emulated CPUs waited for cores.
const TOO_LONG: &str = "waited too long";

/// Returns whether the host's log reports this behind its first `heard` lines.
fn has_logged(seen: &Transcript, heard: usize, part: &str) -> bool {
    seen.host.iter().skip(heard).any(|line| line.contains(part))
}

enum Moment {
    Logged(&'static str),
    Later(u64),
}

/// The next client finds the host updated or not, and never half.
fn clients_die_while_it_is_made() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let mut generation = 1;
    for moment in MOMENTS {
        let heard = host.seen.host.len();
        let mut client = host.client()?;
        client.send(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
        match moment {
            Moment::Logged(part) => {
                // Where CPUs waited too long for cores, the new image does not log it.
                host.wait(part, |seen| has_logged(seen, heard, part) || has_logged(seen, heard, TOO_LONG))?;
            }
            Moment::Later(ms) => host.listen(Duration::from_millis(*ms)),
        }
        drop(client);
        generation = ends_at(&mut host, generation, heard)?;
        both_go_on(&mut host)?;
    }
    ensure!(generation > 1, "none of {} updates was made: {}", MOMENTS.len(), host.seen);
    host.powers_off()
}

/// Waits for the end of an update without a waiting client; the image that runs then.
fn ends_at(host: &mut Host, generation: u64, heard: usize) -> Result<u64> {
    for _ in 0..ATTEMPTS * 100 {
        host.listen(Duration::from_millis(100));
        let now = host.client()?.info()?.generation;
        if now > generation || has_logged(&host.seen, heard, TOO_LONG) {
            ensure!(now - generation <= 1, "{now} follows {generation}");
            return Ok(now);
        }
    }
    bail!("the update does not end: {}", host.seen)
}

/// The next client sends the same file, or another one, and either is whole.
fn a_client_dies_while_it_sends() -> Result<()> {
    let image = baton::image::sealed(fs::read(built("baton.elf")?)?);
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    for pieces in [0, 1, 40] {
        sends_and_dies(&mut host, &image, pieces)?;
        both_go_on(&mut host)?;
    }
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Upload })?;
    ensure!(!refusal.hint.is_empty(), "{refusal:?}");
    send_image(&mut host, &image)?;
    let report = update_by(&mut host, UpdateBy::Upload)?;
    ensure!(report.generation == 2, "{report:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}

/// The last piece is not answered for yet when the client is gone.
fn sends_and_dies(host: &mut Host, file: &[u8], pieces: usize) -> Result<()> {
    let mut hash = Sha256::new(Portable);
    hash.update(file);
    let begin = RequestBody::UploadBegin { kind: UploadKind::Image, bytes: file.len() as u64, sha256: hash.finish() };
    let mut client = host.client()?;
    let ReplyBody::Received { next_offset } = client.request(begin)? else { bail!("not the answer to an upload") };
    let rest = file.get(next_offset as usize..).context("the host has more than was sent")?;
    for (number, piece) in rest.chunks(MAX_UPLOAD_BYTES).take(pieces).enumerate() {
        let offset = next_offset + (number * MAX_UPLOAD_BYTES) as u64;
        client.send(RequestBody::UploadData { offset, bytes: piece.to_vec() })?;
    }
    Ok(())
}

/// Instructions until the guest panics: at once, so that it does in each step of an update; and late, so that some
/// updates are made.
const PATIENCE: [u32; 2] = [AT_ONCE, 200_000_000];
const AT_ONCE: u32 = 1;
/// Of so many updates, one is made at least where guests panic late.
const MOST_UPDATES: u32 = 10;

fn guests_panic() -> Result<()> {
    PATIENCE.into_iter().try_for_each(|patience| panics_again_and_again(patience).context(format!("after {patience}")))
}

/// Each update is made or refused; the guest is reset each time that it panics, as it is to be, and its neighbour
/// misses nothing.
fn panics_again_and_again(patience: u32) -> Result<()> {
    let folder = folder()?;
    let kernel = folder.path().join("panics");
    fs::write(&kernel, code::multiboot(&reports_after(patience)))?;
    let panics = Guest { on_panic: OnPanic::Reset, hung_s: 0, ..program(A, kernel) };
    let watcher = Guest { vcpus: 2, ..tiny(B, "keeper", "seed=2 cpus=2 do=fresh,watch")? };
    let mut host = Recipe::new().options("tsc=skip").guest(panics).guest(watcher).start()?;
    host.guest_prints(B, "keeper: watch: 2:")?;
    let (mut asked, mut made) = (0, 0);
    while asked < ATTEMPTS || (patience != AT_ONCE && made == 0) {
        asked += 1;
        ensure!(asked <= MOST_UPDATES, "none of {MOST_UPDATES} updates was made: {}", host.seen);
        let answer = update_beside(&mut host)?;
        host.event(&EventKind::VmPanicked { name: A.to_owned() })?;
        host.event(&EventKind::VmReset { name: A.to_owned() })?;
        made += u32::from(refused_for_the_guest(answer)?);
        watches_on(&mut host)?;
    }
    host.powers_off()
}

/// A program that counts down, reports a panic and spins.
fn reports_after(patience: u32) -> Vec<u8> {
    // mov ecx, patience; dec ecx; jnz back; mov dx, 0x505; mov al, 1; out dx, al; jmp to itself.
    let mut code = vec![0xb9];
    code.extend(patience.to_le_bytes());
    code.extend([0x49, 0x75, 0xfd, 0x66, 0xba, 0x05, 0x05, 0xb0, 0x01, 0xee, 0xeb, 0xfe]);
    code
}
