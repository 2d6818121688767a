// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the hardware, as each CPU's loop accounts for them: corrected ones are polled and reported; of others the
//! memory is retired, and its owner ends.

use alloc::format;
use core::ops::ControlFlow;

use frames::FrameState;
use mca::{Fatal, Found, Reports, Severity, Unit, Why};
use units::{PAGE_BYTES, PhysAddr, PhysRange};
use wire::EventKind;

use crate::arch::machine_check::{self, Msrs};
use crate::arch::memory::FRAMES;
use crate::arch::percpu::PerCpu;
use crate::arch::{cpu, timer};
use crate::guests::events::record;
use crate::guests::instance::Instance;
use crate::guests::instance::ending::Ending;
use crate::guests::slots::GUESTS;
use crate::kernel::ledger::retired;

/// From one poll of the banks to the next.
const POLL_INTERVAL_US: u64 = 5_000_000;
/// A bank's corrected errors are reported once in so many polls: a minute.
const POLLS_BETWEEN_REPORTS: u16 = 12;
/// An image that has taken over enables the banks so long after that, when its guests run.
const AFTER_TAKE_OVER_US: u64 = 20_000;

/// One CPU's banks, and what is to be done with them when.
pub struct MachineChecks {
    unit: Option<Unit>,
    is_prepared: bool,
    next_poll: u64,
    reports: Reports,
}

impl MachineChecks {
    /// Nothing has been done yet: the CPU may have come with guests from the image before.
    pub fn new() -> Self {
        let next_poll = cpu::tsc() + timer::us_to_ticks(AFTER_TAKE_OVER_US);
        Self { unit: None, is_prepared: false, next_poll, reports: Reports::new(POLLS_BETWEEN_REPORTS) }
    }

    /// Reports what the calling CPU's banks hold from before, and enables them.
    pub fn prepare(&mut self) {
        let cpu = PerCpu::current().index;
        self.is_prepared = true;
        self.unit = machine_check::unit();
        if let Some(unit) = &self.unit {
            let report = |found: &Found| log::warn!("cpu{cpu}: an error from before this boot: {found}");
            unit.prepare(&mut Msrs, report);
            log::debug!("cpu{cpu}: {} machine-check banks, recovery {:?}", unit.banks(), unit.recovery());
        } else {
            log::debug!("cpu{cpu}: no machine-check banks");
        }
        self.schedule();
    }

    fn schedule(&mut self) {
        let next = cpu::tsc() + timer::us_to_ticks(POLL_INTERVAL_US);
        self.next_poll = if self.unit.is_some() { next } else { u64::MAX };
    }

    /// Polls the banks if it is time.
    #[inline]
    pub fn step(&mut self, now: u64) {
        if now >= self.next_poll {
            self.poll();
        }
    }

    /// Returns when the banks are to be polled next.
    pub fn next_alarm(&self) -> Option<u64> {
        (self.next_poll != u64::MAX).then_some(self.next_poll)
    }

    #[inline(never)]
    fn poll(&mut self) {
        let cpu = PerCpu::current().index;
        let unit = if self.is_prepared { self.unit } else { machine_check::unit() };
        let reports = &mut self.reports;
        reports.begin_poll();
        if let Some(unit) = unit {
            unit.poll(&mut Msrs, |found| match found.severity {
                Severity::Corrected => {
                    if let Some(polls) = reports.note(found.bank) {
                        report(cpu, found, polls);
                    }
                }
                _ => account_for(cpu, found),
            });
        }
        if self.is_prepared { self.schedule() } else { self.prepare() }
    }

    /// Accounts for what machine checks have left for the calling CPU.
    #[inline]
    pub fn account_for_damage(&mut self, me: &PerCpu) {
        while let Some(found) = me.damage.take() {
            account_for(me.index, &found);
        }
    }
}

fn report(cpu: u32, found: &Found, polls: u16) {
    let is_corrected = found.severity == Severity::Corrected;
    let (bank, status, address) = (found.bank, found.status.0, found.address);
    record(EventKind::HardwareError { cpu, bank, status, address, is_corrected, polls });
}

/// An error that was not corrected: the guest that owns the memory ends, and the memory is retired.
#[inline(never)]
fn account_for(cpu: u32, found: &Found) {
    report(cpu, found, 1);
    let Some(memory) = found.memory else { return };
    if is_of_the_host(memory) {
        panic!("{}", Fatal { why: Why::HostMemory, found: Some(*found) });
    }
    retired::retire(memory);
    end_owners(memory, found);
}

/// Returns whether the host keeps something in a part of the memory. Addresses without memory are not the host's.
fn is_of_the_host(memory: PhysRange) -> bool {
    let frames = FRAMES.lock();
    let mut pages = (memory.start().0..memory.end().0).step_by(PAGE_BYTES as usize);
    let found = pages.try_for_each(|page| match frames.state_of(PhysAddr(page)) {
        FrameState::Host => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn end_owners(memory: PhysRange, found: &Found) {
    for instance in GUESTS.all().filter_map(|guest| guest.run::<Instance>()) {
        let damaged = instance.machine.memory().pieces().into_iter().filter_map(|piece| {
            let range = PhysRange::from_start(PhysAddr(piece.physical), piece.bytes)?;
            Some(piece.gpa + (range.intersection(memory)?.start().0 - piece.physical))
        });
        for gpa in damaged.take(1) {
            let reason = format!("its memory at {gpa:#x} is damaged, which the hardware could not correct: {found}");
            instance.end(Ending::Damaged(reason));
        }
    }
}
