// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of guests and the host's events reach the reader, however the host ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use baton::client::Closed;
use e2e::bare::BareHost;
use e2e::recipe::{Recipe, tiny};
use lab::Ending;
use wire::{EventKind, ReplyBody, RequestBody, Stream, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("last_words_come_before_anybody_has_subscribed", last_words_come_before_anybody_has_subscribed),
    ("last_words_come_through_an_update", last_words_come_through_an_update),
    ("last_words_come_from_a_host_that_panics", last_words_come_from_a_host_that_panics),
    ("last_words_come_from_a_host_that_panics_and_reboots", last_words_come_from_a_host_that_panics_and_reboots),
    ("many_hosts_under_load_lose_no_last_words", many_hosts_under_load_lose_no_last_words),
];

pub const LONG_RULES: &[Rule] = &[("two_thousand_hosts_under_load_lose_no_last_words", two_thousand_hosts)];

const GUEST: &str = "a";
/// Longest time for any step of a host.
const LIMIT: Duration = Duration::from_secs(60);
/// Hosts that run at a time.
const AT_A_TIME: usize = 4;
/// Number of hosts that are tried, and in the long suite.
const RUNS: u64 = 12;
const LONG_RUNS: u64 = 2000;

fn started() -> EventKind {
    EventKind::VmStarted { name: GUEST.to_owned() }
}

/// A host with a guest that has written its lines, and halts. No client has subscribed to them.
fn host_with_a_line(recipe: Recipe, options: &str) -> Result<BareHost> {
    let guest = tiny(GUEST, "keeper", "do=fresh,wait")?;
    let mut host = BareHost::start(&recipe.options(&format!("tsc=skip {options}")).guest(guest))?;
    host.drain_answers()?;
    has_written(&mut host)?;
    Ok(host)
}

/// Waits until the guest has halted for good: it has left to its host a few times, and does so no more.
fn has_written(host: &mut BareHost) -> Result<()> {
    let end = Instant::now() + LIMIT;
    let (mut before, mut same) = (0, 0);
    while same < 3 {
        thread::sleep(Duration::from_millis(200));
        let now = host.first_vm()?.exits_total;
        same = if now > 0 && now == before { same + 1 } else { 0 };
        before = now;
        ensure!(Instant::now() < end, "the guest does not come to rest");
    }
    Ok(())
}

/// Messages that were sent unasked until the host answered, closed the line, or sent nothing for a while.
#[derive(Debug, Default)]
struct Heard {
    console: String,
    events: Vec<EventKind>,
}

impl Heard {
    fn until(host: &mut BareHost, is_over: impl Fn(&Self) -> bool) -> Result<Self> {
        let (mut heard, end) = (Self::default(), Instant::now() + LIMIT);
        while !is_over(&heard) {
            ensure!(Instant::now() < end, "only this came: {heard:?}");
            match host.client().next(Duration::from_millis(200)) {
                Ok(Some(Stream::Console { bytes, .. })) => heard.console += &String::from_utf8_lossy(&bytes),
                Ok(Some(Stream::Event(event))) => heard.events.push(event.into_owned().kind),
                Ok(_) => {}
                Err(error) if error.is::<Closed>() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(heard)
    }

    fn has_all(&self, events: &[EventKind]) -> Result<()> {
        let lines = ["keeper: fresh: ok", "keeper: wait: going"];
        ensure!(lines.iter().all(|line| self.console.contains(line)), "not what the guest wrote: {self:?}");
        ensure!(events.iter().all(|event| self.events.contains(event)), "not {events:?}: {self:?}");
        Ok(())
    }
}

/// In a restart and at power off.
fn last_words_come_before_anybody_has_subscribed() -> Result<()> {
    let mut host = host_with_a_line(Recipe::new(), "")?;
    match host.client().request_within(LIMIT, RequestBody::Restart)? {
        ReplyBody::Restarted(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("not the answer to a restart: {other:?}"),
    }
    let restarts = EventKind::HostRestarts { generation: 2 };
    let ended = restarts.clone();
    Heard::until(&mut host, |heard| heard.events.contains(&ended))?.has_all(&[started(), restarts])?;
    has_written(&mut host)?;
    host.client().order(RequestBody::PowerOff)?;
    Heard::until(&mut host, |_| false)?.has_all(&[started(), stopped()])
}

/// The image that they were written under is replaced before they are read.
fn last_words_come_through_an_update() -> Result<()> {
    let mut host = host_with_a_line(Recipe::new(), "")?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    match host.client().request_within(LIMIT, update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("not the answer to an update: {other:?}"),
    }
    host.client().order(RequestBody::PowerOff)?;
    Heard::until(&mut host, |_| false)?.has_all(&[EventKind::HostReady, started(), stopped()])
}

fn stopped() -> EventKind {
    EventKind::VmStopped { name: GUEST.to_owned(), reason: "stopped by the operator".to_owned() }
}

fn last_words_come_from_a_host_that_panics() -> Result<()> {
    let mut host = host_with_a_line(Recipe::new().with_fault_points(), "selftest=panic-when-asked panic=halt")?;
    host.client().send(RequestBody::Events { from_sequence: 0, limit: 1 })?;
    Heard::until(&mut host, |heard| heard.events.contains(&started()))?.has_all(&[EventKind::HostReady, started()])
}

/// The machine ends at its reset, and the line with it: only what was sent before has come. It is reset at once.
fn last_words_come_from_a_host_that_panics_and_reboots() -> Result<()> {
    let mut host = host_with_a_line(Recipe::new().with_fault_points(), "selftest=panic-when-asked panic=reboot:0")?;
    host.client().send(RequestBody::Events { from_sequence: 0, limit: 1 })?;
    Heard::until(&mut host, |_| false)?.has_all(&[EventKind::HostReady, started()])
}

fn many_hosts_under_load_lose_no_last_words() -> Result<()> {
    lose_no_last_words(RUNS)
}

fn two_thousand_hosts() -> Result<()> {
    lose_no_last_words(LONG_RUNS)
}

/// Each host boots, runs a guest that writes a line and ends, and powers off, all within a second or two.
fn lose_no_last_words(runs: u64) -> Result<()> {
    let next = AtomicU64::new(0);
    let one_after_the_other = || -> Result<()> {
        while next.fetch_add(1, Ordering::Relaxed) < runs {
            ends_with_its_last_words()?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(one_after_the_other)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a run has panicked")))
    })
}

fn ends_with_its_last_words() -> Result<()> {
    let recipe = Recipe::new().powers_off().options("tsc=skip").guest(tiny(GUEST, "keeper", "do=fresh")?);
    let mut host = recipe.start()?;
    let ending = host.ending()?;
    let is_stop = |event: &EventKind| matches!(event, EventKind::VmStopped { name, .. } if name == GUEST);
    let has_ended = ending == Ending::PoweredOff && host.seen.events.iter().any(is_stop);
    let has_written = host.seen.console_bytes(GUEST, 0).ends_with(b"keeper: fresh: ok\n");
    let has_logged = host.seen.host_logged(&["every guest has ended: power off"]);
    ensure!(has_ended && has_written && has_logged, "not the last words of guest and host:\n{}", host.seen);
    Ok(())
}
