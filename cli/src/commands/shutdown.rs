// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm shutdown` and `baton vm wait`: guests that end by themselves, and the wait for that.

use std::io::{self, IsTerminal as _};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use wire::{RequestBody, VmInfo, VmState};

use super::DONE;
use crate::args::{Format, VmShutdown, VmWait};
use crate::client::Client;
use crate::consent::Ending;

const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The longest that a stopped guest takes to end: its memory is freed.
const STOPPING: Duration = Duration::from_secs(30);

/// Asks guests, each named once, to shut down, and stops those that run on.
pub(super) fn shutdown(client: &mut Client, names: Vec<String>, order: &VmShutdown) -> Result<u8> {
    order.consent.obtain(|| client.vms(), Ending { order: "shutdown", guests: Some(&names) })?;
    let mut waiting = Waiting { names, begun: Instant::now(), format: order.format };
    waiting.note(&client.vms()?, "stopped already");
    // After a refusal the others are still asked; the command's error is the first refusal.
    let refusals: Vec<_> = waiting.names.clone().into_iter().filter_map(|name| press(client, name).err()).collect();
    waiting.names.retain(|name| !refusals.iter().any(|(refused, _)| refused == name));
    waiting.until(client, Some(Duration::from_secs(order.timeout.into())), "shut down")?;
    for name in &waiting.names {
        stop(client, name)?;
    }
    let how = format!("stopped: it did not shut down within {} s", order.timeout);
    waiting.until(client, Some(STOPPING), &how)?;
    if let Some(name) = waiting.names.first() {
        let hint = "see `baton vm list` and `baton log`";
        bail!("guest {name} was stopped, and has not ended within {} s; {hint}", STOPPING.as_secs());
    }
    refusals.into_iter().next().map_or(Ok(DONE), |(_, error)| Err(error))
}

/// Waits until guests, each named once, have ended.
pub(super) fn wait(client: &mut Client, names: Vec<String>, order: &VmWait) -> Result<u8> {
    let mut waiting = Waiting { names, begun: Instant::now(), format: order.format };
    waiting.until(client, order.timeout.map(|seconds| Duration::from_secs(seconds.into())), "ended")?;
    match (waiting.names.first(), order.timeout) {
        (Some(name), Some(seconds)) => {
            bail!("guest {name} has not ended within {seconds} s; `baton vm shutdown {name}` asks it to")
        }
        _ => Ok(DONE),
    }
}

fn press(client: &mut Client, name: String) -> Result<(), (String, anyhow::Error)> {
    client.order(RequestBody::VmShutdown { name: name.clone() }).map_err(|error| (name, error))
}

/// Stops a guest; one that has just ended is no error.
fn stop(client: &mut Client, name: &str) -> Result<()> {
    let stopped = client.order(RequestBody::VmStop { name: name.to_owned() });
    let has_ended = stopped.is_err() && client.vms()?.iter().any(|vm| vm.name == name && vm.state.has_ended());
    if has_ended { Ok(()) } else { stopped }
}

/// Guests that are waited for.
struct Waiting {
    names: Vec<String>,
    begun: Instant,
    format: Format,
}

impl Waiting {
    /// Waits until all have ended, or for so long, and reports each that does.
    fn until(&mut self, client: &mut Client, limit: Option<Duration>, how: &str) -> Result<()> {
        let begun = Instant::now();
        let bar = self.bar(limit);
        while !self.names.is_empty() {
            let vms = client.vms()?;
            bar.iter().for_each(|bar| {
                bar.set_message(self.names.join(", "));
                bar.set_position(begun.elapsed().as_secs());
            });
            match &bar {
                Some(bar) => bar.suspend(|| self.note(&vms, how)),
                None => self.note(&vms, how),
            }
            if self.names.is_empty() || limit.is_some_and(|limit| begun.elapsed() >= limit) {
                break;
            }
            sleep(POLL_INTERVAL);
        }
        bar.iter().for_each(ProgressBar::finish_and_clear);
        Ok(())
    }

    fn bar(&self, limit: Option<Duration>) -> Option<ProgressBar> {
        if self.names.is_empty() || self.format.json || !io::stderr().is_terminal() {
            return None;
        }
        let template = if limit.is_some() { "{bar:40} {pos} of {len} s: {msg}" } else { "{pos} s: {msg}" };
        // The templates are constant, and a test of the tool shows them.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Some(ProgressBar::new(limit.unwrap_or_default().as_secs()).with_style(style))
    }

    /// Reports the guests that have ended, and waits for them no more.
    fn note(&mut self, vms: &[VmInfo], how: &str) {
        let ended = take_ended(&mut self.names, vms);
        let seconds = self.begun.elapsed().as_secs_f64();
        for VmInfo { name, state, reason, .. } in ended {
            let (how, reason) = (self::how(*state, how), reason.as_deref().unwrap_or_default());
            match self.format.json {
                true => {
                    let line = serde_json::json!({ "name": name, "done": how, "reason": reason, "seconds": seconds });
                    println!("{line}");
                }
                false => println!("{name} {how} ({reason}; {seconds:.1} s)"),
            }
        }
    }
}

/// Returns the word for a guest's end: `how`, or `failed`.
fn how(state: VmState, how: &str) -> &str {
    if state == VmState::Failed { "failed" } else { how }
}

/// Removes the guests that have ended from `names`.
fn take_ended<'a>(names: &mut Vec<String>, vms: &'a [VmInfo]) -> Vec<&'a VmInfo> {
    let ended: Vec<_> = vms.iter().filter(|vm| vm.state.has_ended() && names.contains(&vm.name)).collect();
    names.retain(|name| ended.iter().all(|vm| vm.name != *name));
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::vm;

    #[test]
    fn only_those_that_have_ended_are_waited_for_no_more() {
        let mut names = ["web", "db", "gone"].map(str::to_owned).to_vec();
        let vms = [vm("web", VmState::Stopped), vm("db", VmState::Paused), vm("other", VmState::Stopped)];
        let ended: Vec<_> = take_ended(&mut names, &vms).into_iter().map(|vm| vm.name.clone()).collect();
        assert_eq!(ended, ["web"]);
        assert_eq!(names, ["db", "gone"]);
        assert_eq!(take_ended(&mut names, &[vm("db", VmState::Failed)]).len(), 1);
        assert_eq!([how(VmState::Failed, "ended"), how(VmState::Stopped, "ended")], ["failed", "ended"]);
    }
}
