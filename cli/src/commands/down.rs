// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton down`: asks the host to power off, waits, and ends its processes only if it does not.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Signal, kill_process};
use wire::RequestBody;

use super::{DONE, connect};
use crate::args::Target;
use crate::client::{Closed, NoAnswer};
use crate::connection::Address;
use crate::consent::{Consent, Ending};
use crate::running;

/// The time limit for the host to accept the order.
const ORDER_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for `baton up` to end the emulator.
const FORCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time without an answer that shows that a host is off: a request is repeated within it.
const OFF_AFTER: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(target: &Target, consent: Consent, timeout_seconds: u64) -> Result<u8> {
    consent.obtain(|| connect(target)?.vms(), Ending { order: "power-off", guests: None })?;
    match target.address()? {
        Address::Lab(name) => lab_host(target, &name, timeout_seconds),
        address => remote_host(target, &address, timeout_seconds),
    }
}

/// Powers off a host that does not run in a process of ours: it is off once it does not answer any more.
fn remote_host(target: &Target, address: &Address, timeout_seconds: u64) -> Result<u8> {
    let mut client = connect(target)?;
    let deadline = Instant::now() + Duration::from_secs(timeout_seconds);
    let mut asked = client.order(RequestBody::PowerOff);
    while !asked.as_ref().is_err_and(is_off) {
        asked?;
        if Instant::now() >= deadline {
            bail!(
                "the host at {address} did not power off within {timeout_seconds} s; cut its power, or see its console"
            );
        }
        thread::sleep(INTERVAL);
        asked = client.request_within(OFF_AFTER, RequestBody::Info).map(drop);
    }
    println!("the host at {address} is off: it does not answer any more");
    Ok(DONE)
}

fn is_off(error: &anyhow::Error) -> bool {
    error.is::<Closed>() || error.is::<NoAnswer>()
}

fn lab_host(target: &Target, name: &str, timeout_seconds: u64) -> Result<u8> {
    let asked = connect(target)?.request_within(ORDER_TIMEOUT, RequestBody::PowerOff);
    let patience = match &asked {
        Ok(_) => Duration::from_secs(timeout_seconds),
        // It may have ended before its answer arrived.
        Err(_) => Duration::from_secs(1),
    };
    if has_ended(name, patience) {
        println!("host {name:?} is off");
        return Ok(DONE);
    }
    let Some((tool, emulator)) = running::pids_of(name) else { return Ok(DONE) };
    let reason = match asked {
        Ok(_) => format!("did not power off within {timeout_seconds} s"),
        Err(error) => format!("did not take the order ({error:#})"),
    };
    // The folder is locked, so these processes are still the ones that were recorded.
    let _ = kill_process(tool, Signal::TERM);
    if !has_ended(name, FORCE_TIMEOUT) {
        let _ = kill_process(emulator, Signal::KILL);
        let _ = kill_process(tool, Signal::KILL);
    }
    if !has_ended(name, FORCE_TIMEOUT) {
        bail!("host {name:?} {reason}, and cannot be ended by force; see processes {tool} and {emulator}");
    }
    println!("host {name:?} {reason}; it was ended by force");
    Ok(DONE)
}

fn has_ended(name: &str, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    while running::pids_of(name).is_some() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(INTERVAL);
    }
    true
}
