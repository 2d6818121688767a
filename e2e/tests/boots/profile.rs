// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile of the hypervisor itself.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::client::{Client, Taken};
use baton::config::Guest;
use baton::paths::default_image;
use baton::profile::Stacks;
use baton::symbols::Symbols;
use bundle::{OnPanic, Pmu};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::recipe::{Recipe, tiny};
use wire::{ProfilePage, Refusal, RefusalCode, ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub mod command;

pub const RULES: &[Rule] = &[
    ("who_runs_and_what_exits_cost_is_seen_and_the_guest_notices_nothing", all_is_seen),
    ("there_is_one_at_a_time_and_none_without_a_client", there_is_one_at_a_time),
    ("an_update_ends_one_and_the_next_image_takes_others", an_update_ends_one),
];

const GUEST: &str = "watch";
/// It checks its own counters' counts for as long as it runs, with exits all the time.
const ALL_AGREE: &str = "overflows, all agree";
const CPUS: u32 = 2;
/// The machine may be given little time: so often it is checked again for what has not been seen.
const ROUNDS: usize = 30;

fn busy_host() -> Result<Host> {
    let watch = Guest { pmu: Pmu::Intel, on_panic: OnPanic::Ignore, ..tiny(GUEST, "counters", "do=watch")? };
    // To find PCI functions out takes some memory for good: not meanwhile.
    let mut host = Recipe::new().cpus(CPUS).options("pci=all").guest(watch).start()?;
    host.guest_prints(GUEST, ALL_AGREE)?;
    Ok(host)
}

fn goes_on(host: &mut Host) -> Result<()> {
    host.guest_prints(GUEST, ALL_AGREE)?;
    ensure!(!host.seen.console(GUEST).contains("WRONG"), "{}", host.seen);
    Ok(())
}

/// The page, or why there is none.
fn ask(client: &mut Client, body: RequestBody) -> Result<Result<ProfilePage, Refusal>> {
    match client.request(body) {
        Ok(ReplyBody::Profile(page)) => Ok(Ok(page)),
        Ok(other) => bail!("not a profile: {other:?}"),
        Err(error) => Ok(Err(error.downcast::<Refusal>()?)),
    }
}

fn is_refused(client: &mut Client, body: RequestBody) -> Result<()> {
    match ask(client, body)? {
        Err(refusal) if refusal.code == RefusalCode::WrongState && !refusal.hint.is_empty() => Ok(()),
        other => bail!("not the refusal that is due: {other:?}"),
    }
}

/// The client that takes it has no more of it.
fn end(client: &mut Client, by: u32) -> Result<()> {
    while ask(client, RequestBody::ProfileRead { by, is_end: true })?.is_ok_and(|page| !page.samples.is_empty()) {}
    is_refused(client, RequestBody::ProfileRead { by, is_end: false })
}

fn all_is_seen() -> Result<()> {
    let mut host = busy_host()?;
    let symbols = Symbols::load(&default_image(None)?)?;
    let free_before = host.client()?.info()?.memory_free_bytes;
    let is_seen = |stacks: &Stacks| {
        let has = |what: &str| stacks.0.iter().any(|stack| stack.frames.iter().any(|frame| frame.contains(what)));
        has("idle") && has("guest watch") && has("Machine") && has("handle")
    };
    let mut taken = Taken::default();
    let mut stacks = Stacks::default();
    for _ in 0..ROUNDS {
        let client = &mut host.client()?;
        let round = client.profile(200, Duration::from_secs(1), |_, page| {
            ensure!(symbols.build_id() == Some(&page.build), "the image's build is {:?}", symbols.build_id());
            Ok(())
        })?;
        ensure!(round.cut_short.is_none() && round.head.period_us == 5000, "{:?}", round.head);
        let of = Stacks::of(&round.words, round.head.code, |at| symbols.functions(at), |_| GUEST.to_owned());
        // Where a CPU gets no time, what it was sent twice comes once.
        ensure!(of.total() + round.head.lost <= round.head.asked, "{} of {:?}", of.total(), round.head);
        ensure!(of.total() + round.head.lost >= round.head.asked / 3, "{} of {:?}", of.total(), round.head);
        taken.words.extend(&round.words);
        stacks = Stacks::of(&taken.words, round.head.code, |at| symbols.functions(at), |_| GUEST.to_owned());
        if is_seen(&stacks) {
            break;
        }
    }
    ensure!(is_seen(&stacks), "{}", stacks.folded());
    goes_on(&mut host)?;
    while host.client()?.info()?.memory_free_bytes != free_before {
        host.wait_a_moment()?;
    }
    host.powers_off()
}

fn there_is_one_at_a_time() -> Result<()> {
    let mut host = busy_host()?;
    let client = &mut host.client()?;
    is_refused(client, RequestBody::ProfileRead { by: 1, is_end: false })?;
    ask(client, RequestBody::ProfileBegin { by: 1, hz: 50 })??;
    is_refused(client, RequestBody::ProfileBegin { by: 2, hz: 50 })?;
    is_refused(client, RequestBody::ProfileRead { by: 2, is_end: true })?;
    ask(client, RequestBody::ProfileRead { by: 1, is_end: false })??;
    end(client, 1)?;
    // No client reads the next one: it makes room by itself.
    begins(&mut host, 3)?;
    begins(&mut host, 4)?;
    end(&mut host.client()?, 4)?;
    goes_on(&mut host)?;
    host.powers_off()
}

/// Begins one as soon as there is none.
fn begins(host: &mut Host, by: u32) -> Result<()> {
    while ask(&mut host.client()?, RequestBody::ProfileBegin { by, hz: 50 })?.is_err() {
        host.wait_a_moment()?;
    }
    Ok(())
}

fn an_update_ends_one() -> Result<()> {
    let mut host = busy_host()?;
    let client = &mut host.client()?;
    ask(client, RequestBody::ProfileBegin { by: 1, hz: 1000 })??;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    match client.request_within(BOOT_LIMIT, update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("not the answer to an update: {other:?}"),
    }
    is_refused(client, RequestBody::ProfileRead { by: 1, is_end: false })?;
    begins(&mut host, 2)?;
    end(&mut host.client()?, 2)?;
    goes_on(&mut host)?;
    host.powers_off()
}
