// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a processor, a virtual one or the host's: whoever holds it takes them soon after they are asked for.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use wire::{CpuPerf, ReplyBody, RequestBody, VcpuPerf};

use super::{Client, unexpected};

/// How long whoever holds it may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How often it is asked again.
const INTERVAL: Duration = Duration::from_millis(5);

impl Client {
    /// Figures of a machine's processor that were taken after this was called.
    pub fn figures(&mut self, name: &str, vcpu: u32) -> Result<VcpuPerf> {
        let question = RequestBody::VmPerf { name: name.to_owned(), vcpu };
        let whose = format!("virtual processor {vcpu} of {name}");
        self.taken_anew(&question, &whose, |reply| match reply {
            ReplyBody::Perf { asked_ns, latest } => Ok((asked_ns, latest.map(|latest| (latest.at_ns, *latest)))),
            other => bail!(unexpected(&other)),
        })
    }

    /// What the host's own counters of a processor say after this was called.
    pub fn cpu_figures(&mut self, index: u32) -> Result<CpuPerf> {
        self.taken_anew(&RequestBody::CpuPerf { index }, &format!("processor {index}"), |reply| match reply {
            ReplyBody::CpuPerf { asked_ns, latest } => Ok((asked_ns, latest.map(|latest| (latest.at_ns, latest)))),
            other => bail!(unexpected(&other)),
        })
    }

    /// Asks until there are figures that were taken since.
    fn taken_anew<T>(
        &mut self,
        question: &RequestBody,
        whose: &str,
        told: impl Fn(ReplyBody) -> Result<(u64, Option<(u64, T)>)>,
    ) -> Result<T> {
        let (mut since, end) = (None, Instant::now() + TIMEOUT);
        loop {
            let (asked_ns, latest) = told(self.request(question.clone())?)?;
            let since = *since.get_or_insert(asked_ns);
            if let Some((_, figures)) = latest.filter(|(at_ns, _)| *at_ns >= since) {
                return Ok(figures);
            }
            ensure!(
                Instant::now() < end,
                "nobody has looked at {whose} for {TIMEOUT:?}; `baton cpu list` shows where it is"
            );
            thread::sleep(INTERVAL);
        }
    }
}
