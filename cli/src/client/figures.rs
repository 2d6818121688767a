// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a vCPU or a CPU: the CPU that holds them samples them soon after a request.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use wire::{CpuPerf, Refusal, ReplyBody, RequestBody, VcpuPerf};

use super::{Client, unexpected};

/// The time within which that CPU has sampled them.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between two requests.
const INTERVAL: Duration = Duration::from_millis(5);

impl Client {
    /// Returns figures of a machine's vCPU, sampled after this call.
    pub fn figures(&mut self, name: &str, vcpu: u32) -> Result<VcpuPerf> {
        let question = RequestBody::VmPerf { name: name.to_owned(), vcpu };
        let owner = format!("vCPU {vcpu} of {name}");
        self.taken_again(&question, &owner, |reply| match reply {
            ReplyBody::Perf { asked_ns, latest } => Ok((asked_ns, latest.map(|latest| (latest.at_ns, *latest)))),
            other => bail!(unexpected(&other)),
        })
    }

    /// Returns the host's own counters of a CPU, sampled after this call.
    pub fn cpu_figures(&mut self, index: u32) -> Result<CpuPerf> {
        self.taken_again(&RequestBody::CpuPerf { index }, &format!("CPU {index}"), |reply| match reply {
            ReplyBody::CpuPerf { asked_ns, latest } => Ok((asked_ns, latest.map(|latest| (latest.at_ns, latest)))),
            other => bail!(unexpected(&other)),
        })
    }

    /// Has figures of a vCPU sampled, and returns those that the request before has had sampled; `None` if there are
    /// none, or the host refuses: the machine may have ended.
    pub fn last_figures(&mut self, name: &str, vcpu: u32) -> Result<Option<VcpuPerf>> {
        match self.unless_refused(RequestBody::VmPerf { name: name.to_owned(), vcpu })? {
            Some(ReplyBody::Perf { latest, .. }) => Ok(latest.map(|latest| *latest)),
            None => Ok(None),
            Some(other) => bail!(unexpected(&other)),
        }
    }

    /// As [`Self::last_figures`], for the host's own counters of a CPU.
    pub fn last_cpu_figures(&mut self, index: u32) -> Result<Option<CpuPerf>> {
        match self.unless_refused(RequestBody::CpuPerf { index })? {
            Some(ReplyBody::CpuPerf { latest, .. }) => Ok(latest),
            None => Ok(None),
            Some(other) => bail!(unexpected(&other)),
        }
    }

    fn unless_refused(&mut self, body: RequestBody) -> Result<Option<ReplyBody>> {
        match self.request(body) {
            Ok(reply) => Ok(Some(reply)),
            Err(error) if error.is::<Refusal>() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Repeats the request until its figures are newer than the first request.
    fn taken_again<T>(
        &mut self,
        question: &RequestBody,
        owner: &str,
        read: impl Fn(ReplyBody) -> Result<(u64, Option<(u64, T)>)>,
    ) -> Result<T> {
        let (mut since, end) = (None, Instant::now() + TIMEOUT);
        loop {
            let (asked_ns, latest) = read(self.request(question.clone())?)?;
            let since = *since.get_or_insert(asked_ns);
            if let Some((_, figures)) = latest.filter(|(at_ns, _)| *at_ns >= since) {
                return Ok(figures);
            }
            ensure!(
                Instant::now() < end,
                "no CPU has sampled {owner} for {TIMEOUT:?}; `baton cpu list` shows where it is"
            );
            thread::sleep(INTERVAL);
        }
    }
}
