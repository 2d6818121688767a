// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a virtual processor: whoever holds it takes them soon after they are asked for.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use wire::{ReplyBody, RequestBody, VcpuPerf};

use super::{Client, unexpected};

/// How long whoever holds it may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How often it is asked again.
const INTERVAL: Duration = Duration::from_millis(5);

impl Client {
    /// Figures of a machine's processor that were taken after this was called.
    pub fn figures(&mut self, name: &str, vcpu: u32) -> Result<VcpuPerf> {
        let (mut since, end) = (None, Instant::now() + TIMEOUT);
        loop {
            let (asked_ns, latest) = match self.request(RequestBody::VmPerf { name: name.to_owned(), vcpu })? {
                ReplyBody::Perf { asked_ns, latest } => (asked_ns, latest),
                other => bail!(unexpected(&other)),
            };
            let since = *since.get_or_insert(asked_ns);
            if let Some(latest) = latest.filter(|latest| latest.at_ns >= since) {
                return Ok(*latest);
            }
            ensure!(
                Instant::now() < end,
                "nobody has looked at virtual processor {vcpu} of {name} for {TIMEOUT:?}; `baton cpu list` shows where it is"
            );
            thread::sleep(INTERVAL);
        }
    }
}
