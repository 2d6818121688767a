// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own counters: they count while a client reads them.

use alloc::format;
use alloc::string::ToString;

use wire::{Refusal, RefusalCode, ReplyBody};

use crate::arch::{cpu, percpu, timer};
use crate::guests::executive::counting;

/// The time for which they count without a request.
const PATIENCE_US: u64 = 5_000_000;

/// The time until which they count; `None`: they are disabled.
#[derive(Default)]
pub struct Counts(Option<u64>);

impl Counts {
    /// Returns a CPU's latest counts, and requests new ones.
    pub fn read(&mut self, index: u32) -> Result<ReplyBody, Refusal> {
        let Some(cpu) = percpu::of(index).filter(|cpu| cpu.is_here()) else {
            return Err(Refusal {
                code: RefusalCode::WrongState,
                reason: format!("CPU {index} is not online"),
                hint: "`baton cpu list` shows those that are".to_string(),
            });
        };
        self.0 = Some(cpu::tsc() + timer::us_to_ticks(PATIENCE_US));
        counting::want(true);
        let latest = cpu.figures.request_latest();
        percpu::wake(index);
        Ok(ReplyBody::CpuPerf { asked_ns: timer::uptime_ns(), latest })
    }

    /// Disables each CPU's counters once no client has read them for `PATIENCE_US`.
    pub fn poll(&mut self) {
        if self.0.take_if(|until| *until <= cpu::tsc()).is_some() {
            counting::want(false);
            percpu::indices().for_each(percpu::wake);
        }
    }

    /// Returns when to check again.
    pub fn alarm(&self) -> Option<u64> {
        self.0
    }
}
