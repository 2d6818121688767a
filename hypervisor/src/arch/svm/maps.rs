// SPDX-License-Identifier: MIT OR Apache-2.0
//! The permission maps that all guests share: they own the same registers and no port.

use mitigations::Assessment;
use spin::Once;
use svm::permission::{IO_MAP_BYTES, MSR_MAP_BYTES, Pass, fill_io_map, fill_msr_map, let_through};
use units::PhysAddr;
use vm::cpu::cpuid::Speculation;
use vm::cpu::msr::number::{PRED_CMD, SPEC_CTRL};

use crate::arch::address::DIRECT_MAP;
use crate::arch::memory::permanent_frames;
use crate::arch::speculation;
use crate::arch::unavailable::OutOfMemory;

static MAPS: Once<Maps> = Once::new();

/// Physical addresses.
pub struct Maps {
    /// The I/O permission map.
    pub io: PhysAddr,
    msr: PhysAddr,
    /// The same for guests that are informed of an IBPB: PRED_CMD takes it without an exit, and where the CPU exchanges
    /// SPEC_CTRL, that is the guest's, too.
    msr_with_speculation: PhysAddr,
}

impl Maps {
    /// The MSR permission map of a guest that is shown this speculation control.
    pub fn msr(&self, offered: Speculation) -> PhysAddr {
        if offered.has_ibpb { self.msr_with_speculation } else { self.msr }
    }
}

/// Makes the maps, once.
pub fn prepare() -> Result<(), OutOfMemory> {
    MAPS.try_call_once(make).map(|_| ())
}

/// The maps, once made.
pub fn get() -> Option<&'static Maps> {
    MAPS.get()
}

fn make() -> Result<Maps, OutOfMemory> {
    let io = permanent_frames(IO_MAP_BYTES as u64).ok_or(OutOfMemory)?;
    let msr = permanent_frames(MSR_MAP_BYTES as u64).ok_or(OutOfMemory)?;
    let bytes = |at: PhysAddr, count: usize| {
        // SAFETY: the frames were just allocated; no guest runs on these maps yet.
        unsafe { core::slice::from_raw_parts_mut((DIRECT_MAP + at.0) as *mut u8, count) }
    };
    fill_io_map(bytes(io, IO_MAP_BYTES));
    fill_msr_map(bytes(msr, MSR_MAP_BYTES), vm::cpu::msr::OWNED_BY_GUEST);
    let msr_with_speculation = permanent_frames(MSR_MAP_BYTES as u64).ok_or(OutOfMemory)?;
    let map = bytes(msr_with_speculation, MSR_MAP_BYTES);
    fill_msr_map(map, vm::cpu::msr::OWNED_BY_GUEST);
    let_through(map, PRED_CMD, Pass::Write);
    if speculation::assessment().is_some_and(exchanges_spec_ctrl) {
        let_through(map, SPEC_CTRL, Pass::Both);
    }
    Ok(Maps { io, msr, msr_with_speculation })
}

fn exchanges_spec_ctrl(assessment: &Assessment) -> bool {
    assessment.cpu.has_virtual_spec_ctrl()
}
