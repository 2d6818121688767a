// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that leave the running host and come back.
//!
//! One that leaves has given away all it held (`executive::leaving`); it disables what could interrupt it, states
//! that it is offline, and halts. Then INIT puts it where it executes nothing, not even for an NMI, and needs nothing
//! of this image, until a start-up interrupt. Its stack, its tables and its frames stay its own, so that coming and
//! going for ever takes no memory.

use core::fmt;

use bringup::{Phase, bring_up_some};
use sched::LeaveOrder;

use super::bring_up::prepare_one;
use super::crews::LATER;
use super::entry;
use super::table::{APIC_IDS, apic_id, online};
use super::threads;
use super::virtualization::VIRT;
use crate::arch::apic;
use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::{self, BOOT_CPU};
use crate::arch::smp::{self, Machine};
use crate::kernel::places;

cpu_local! {
    static LEAVE: LeaveOrder = LeaveOrder::new();
}

/// The reason for which a CPU did not come online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlineError {
    /// No memory for its stack, or there was none for the first steps of any.
    OutOfMemory,
    /// It came no further than this.
    Dead(Phase),
}

impl fmt::Display for OnlineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("there is no memory for its first steps"),
            Self::Dead(phase) => write!(f, "it did not come further than {phase}"),
        }
    }
}

/// The order to leave of the CPU `index`, which the machine has.
pub fn leave_order(index: u32) -> &'static LeaveOrder {
    LEAVE.of(index).unwrap_or_else(|| panic!("there is no CPU {index}"))
}

/// Opens the online CPUs for vCPUs, if guests can run.
pub(super) fn open_all() {
    online().into_iter().for_each(open);
}

fn open(index: u32) {
    if let Some(Ok(virt)) = VIRT.get()
        && threads::runs_guests(index)
    {
        places::open(index, places::room(*virt));
    }
}

/// Takes an offline CPU online, and recalls the vCPUs that belong there. Waits for it, for a bounded time.
///
/// It comes by INIT and start-up interrupt. Should CPUs that leave be parked one day, this is where such a one is
/// released instead, and [`park`] where it is left alone.
pub fn online_again(index: u32) -> Result<(), OnlineError> {
    let crew = LATER.get().ok_or(OnlineError::OutOfMemory)?.crew(index);
    prepare_one(index).map_err(|_| OnlineError::OutOfMemory)?;
    leave_order(index).reset();
    let mut machine = Machine::new(APIC_IDS.get().map_or(&[], |ids| ids));
    let summary = bring_up_some(crew, &[index], &mut machine);
    machine.stay_awake();
    match summary.dead.first() {
        Some((_, phase)) => Err(OnlineError::Dead(*phase)),
        None => {
            log::info!("CPU {index} came online in {} us", smp::ticks_to_us(summary.total_ticks));
            open(index);
            places::call_home();
            Ok(())
        }
    }
}

/// A CPU has reported that it is offline: from now on it waits for its start-up interrupt.
pub fn park(index: u32) {
    if let Some(apic_id) = apic_id(index).filter(|_| index != BOOT_CPU) {
        apic::send_init(apic_id);
    }
}

/// The guests are known: lets the others into their loops and enters this CPU's own.
pub fn join() -> ! {
    open_all();
    entry::let_in();
    online().into_iter().for_each(percpu::wake);
    entry::run()
}
