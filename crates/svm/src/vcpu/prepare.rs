// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control block's first contents.

use vm::vcpu::{AccessRights, EntryState, Exceptions, Gpr, Segment, SegmentName, efer};

use crate::intercept;
use crate::vmcb::{VirtualInterrupt, Vmcb, VmcbSegment, tlb};

/// PAUSEs in a row that mean that a lock's holder does not run (section 15.14.4): far more than one takes that does.
const PAUSES_OF_A_SPIN: u16 = 4096;
/// PAUSEs further apart, in cycles, are not of one spin. CPUs without the threshold ignore it.
const CYCLES_BETWEEN_PAUSES: u16 = 128;
/// Bits of DR6 and DR7 that always read as one.
const DR6_AFTER_RESET: u64 = 0xffff_0ff0;
const DR7_AFTER_RESET: u64 = 0x400;

/// Physical addresses of the tables that a control block points to.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// I/O permission map.
    pub io_map: u64,
    /// MSR permission map.
    pub msr_map: u64,
    /// Root of the nested page tables.
    pub nested_root: u64,
}

/// Intercepts and tables.
pub fn control(vmcb: &mut Vmcb, asid: u32, tables: Tables) {
    let control = &mut vmcb.control;
    control.intercept_exceptions = Exceptions::ALWAYS.bits();
    control.intercept_misc1 = intercept::MISC1;
    control.intercept_misc2 = intercept::MISC2;
    control.iopm_base = tables.io_map;
    control.msrpm_base = tables.msr_map;
    control.asid = asid;
    control.tlb_control = tlb::FLUSH_ALL;
    control.virtual_interrupt = VirtualInterrupt::new().with_masking(true);
    control.nested_control = 1;
    control.nested_cr3 = tables.nested_root;
}

/// Has the CPU count PAUSEs, where it can.
pub fn filter_pauses(vmcb: &mut Vmcb) {
    vmcb.control.intercept_misc1.insert(intercept::Misc1::PAUSE);
    vmcb.control.pause_filter_count = PAUSES_OF_A_SPIN;
    vmcb.control.pause_filter_threshold = CYCLES_BETWEEN_PAUSES;
}

/// The guest's registers as `entry` has them; all others are as after a reset.
pub fn save(vmcb: &mut Vmcb, entry: &EntryState) {
    let save = &mut vmcb.save;
    save.segments = [entry.data.into(); 6];
    save.segments[SegmentName::Cs as usize] = entry.cs.into();
    save.tr = entry.tr.into();
    save.ldtr = Segment { rights: AccessRights::LOCAL_TABLE, limit: 0xffff, ..Segment::default() }.into();
    save.gdtr = VmcbSegment { selector: 0, attributes: 0, limit: entry.gdtr.limit.into(), base: entry.gdtr.base };
    save.idtr = VmcbSegment { selector: 0, attributes: 0, limit: entry.idtr.limit.into(), base: entry.idtr.base };
    save.efer = entry.efer | efer::SVME;
    (save.cr0, save.cr3, save.cr4) = (entry.cr0, entry.cr3, entry.cr4);
    (save.dr6, save.dr7) = (DR6_AFTER_RESET, DR7_AFTER_RESET);
    (save.rip, save.rsp, save.rflags) = (entry.rip, entry.rsp, entry.rflags | 2);
    save.rax = entry.gprs[Gpr::Rax as usize];
}
