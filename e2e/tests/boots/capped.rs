// SPDX-License-Identifier: MIT OR Apache-2.0
//! Upper limits: what a guest gets of CPUs that no other guest wants.

use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::Guest;
use bundle::OnPanic;
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{RequestBody, VmSettings};

use super::Rule;

pub const RULES: &[Rule] =
    &[("a_guest_gets_no_more_than_its_cap_across_an_update", a_guest_gets_no_more_than_its_cap_across_an_update)];

const NAME: &str = "capped";
/// Its vCPUs never wait, each on a CPU of its own.
const VCPUS: u32 = 2;

fn a_guest_gets_no_more_than_its_cap_across_an_update() -> Result<()> {
    // It resembles a kernel that spins.
    let guest = Guest {
        vcpus: VCPUS,
        on_panic: OnPanic::Ignore,
        cap_percent: 60,
        ..tiny(NAME, "keeper", "seed=1 cpus=2 do=watch")?
    };
    let mut host = Recipe::new().cpus(VCPUS).guest(guest).start()?;
    host.guest_prints(NAME, "keeper: watch: ")?;
    gets(&mut host, 54..=63)?;
    set(&mut host, 20)?;
    gets(&mut host, 17..=23)?;
    host.update_to(2)?;
    gets(&mut host, 17..=23)?;
    set(&mut host, 0)?;
    gets(&mut host, 150..=200)?;
    ensure!(!host.seen.console(NAME).contains("WRONG"), "{}", host.seen);
    host.powers_off()
}

fn set(host: &mut Host, percent: u32) -> Result<()> {
    let settings = VmSettings { cap_percent: Some(percent), ..VmSettings::default() };
    host.order(RequestBody::VmSet { name: NAME.to_owned(), settings })?;
    // Time beyond the new limit is taken from the windows that follow.
    thread::sleep(Duration::from_millis(300));
    Ok(())
}

/// All of its vCPUs together get so many percent of one CPU, and wait for all else.
fn gets(host: &mut Host, percent: RangeInclusive<u64>) -> Result<()> {
    let before = times(host)?;
    thread::sleep(Duration::from_secs(2));
    let after = times(host)?;
    let mut shares = [0; 2];
    for (before, after) in before.iter().zip(&after) {
        let over = after[0] - before[0];
        (0..2).for_each(|at| shares[at] += 1000 * (after[at + 1] - before[at + 1]) / over);
    }
    let [ran, waited] = shares.map(|share| share / 10);
    ensure!(percent.contains(&ran), "it ran for {ran} % of a CPU's time, not {percent:?}");
    ensure!((195..=205).contains(&(ran + waited)), "it ran for {ran} % and waited for {waited} %");
    Ok(())
}

/// Of each vCPU: the time at which it was asked, what it has run, and what it has waited.
fn times(host: &mut Host) -> Result<Vec<[u64; 3]>> {
    (0..VCPUS)
        .map(|vcpu| {
            let figures = host.client()?.figures(NAME, vcpu)?;
            Ok([figures.at_ns, figures.ran_ns, figures.waited_ns])
        })
        .collect()
}
