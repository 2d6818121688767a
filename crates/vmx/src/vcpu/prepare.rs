// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VMCS's first contents, and a vCPU's first registers.

use vm::vcpu::{AccessRights, EntryState, Segment, SegmentName, cr0, efer};

use super::cache::Cache;
use super::slot::{Part, Slot};
use crate::control::{Control, Word};
use crate::entry::GuestSegment;
use crate::ept::Eptp;
use crate::field::{Field16, Field32, Field64, FieldNatural, Vmcs};
use crate::settings::Settings;

/// PAUSEs in a loop are at most so many ticks apart (section 26.1.3, "PAUSE").
const TICKS_BETWEEN_PAUSES: u32 = 128;
/// A loop of PAUSEs this long, in ticks, waits for a CPU that does not run.
const TICKS_OF_A_SPIN: u32 = 1 << 16;
/// Bits of DR6 and DR7 that always read as one.
const DR6_AFTER_RESET: u64 = 0xffff_0ff0;
const DR7_AFTER_RESET: u64 = 0x400;
/// No VMCS is behind the link pointer (section 25.4.2).
const NO_LINK: u64 = u64::MAX;

/// Physical addresses of what a VMCS points to.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Root of the extended page tables.
    pub ept_root: u64,
    /// MSR bitmap.
    pub msr_bitmap: u64,
    /// Virtual-APIC page.
    pub virtual_apic: u64,
}

/// Fields that stay as they are for as long as the vCPU lives.
pub(super) fn write(vmcs: &mut impl Vmcs, settings: &Settings, tables: Tables) {
    vmcs.write_32(Field32::PinControls, settings.word(Word::Pin));
    vmcs.write_32(Field32::SecondaryControls, settings.word(Word::Secondary));
    vmcs.write_32(Field32::ExitControls, settings.word(Word::Exit));
    for field in [
        Field32::PageFaultErrorCodeMask,
        Field32::PageFaultErrorCodeMatch,
        Field32::Cr3TargetCount,
        Field32::ExitMsrStoreCount,
        Field32::ExitMsrLoadCount,
        Field32::EntryMsrLoadCount,
        Field32::EntryInterruptionInformation,
        Field32::TprThreshold,
        Field32::GuestActivityState,
    ] {
        vmcs.write_32(field, 0);
    }
    vmcs.write_64(Field64::VmcsLinkPointer, NO_LINK);
    vmcs.write_64(Field64::EptPointer, Eptp::of_tables(paging::PhysAddr(tables.ept_root)).into_bits());
    vmcs.write_64(Field64::MsrBitmap, tables.msr_bitmap);
    vmcs.write_64(Field64::VirtualApicAddress, tables.virtual_apic);
    vmcs.write_natural(FieldNatural::Cr0GuestHostMask, settings.owned_cr0());
    vmcs.write_natural(FieldNatural::Cr4GuestHostMask, settings.owned_cr4());
    if settings.controls.has(Control::PauseLoopExiting) {
        vmcs.write_32(Field32::PleGap, TICKS_BETWEEN_PAUSES);
        vmcs.write_32(Field32::PleWindow, TICKS_OF_A_SPIN);
    }
}

/// The tag of what is translated for the guest, where the CPU has tags.
pub(super) fn write_tag(vmcs: &mut impl Vmcs, settings: &Settings, tag: u32) {
    if settings.controls.has(Control::EnableVpid) {
        vmcs.write_16(Field16::Vpid, tag as u16);
    }
}

/// The guest's registers as `entry` has them; what it does not name is as after a reset. PAT and the time stamp counter
/// stay.
pub(super) fn enter(cache: &mut Cache, settings: &Settings, entry: &EntryState) {
    let is_long = entry.efer & efer::LME != 0 && entry.cr0 & cr0::PG != 0;
    let lma = if is_long { efer::LMA } else { 0 };
    set_mode(cache, settings, entry.efer & !efer::LMA | lma);
    set_cr0(cache, settings, entry.cr0);
    set_cr4(cache, settings, entry.cr4);
    let ldtr = Segment { rights: AccessRights::LOCAL_TABLE, limit: 0xffff, ..Segment::default() };
    use SegmentName::{Cs, Ds, Es, Fs, Gs, Ldtr, Ss, Tr};
    [Es, Ss, Ds, Fs, Gs].into_iter().for_each(|name| set_segment(cache, name, entry.data));
    [(Cs, entry.cs), (Tr, entry.tr), (Ldtr, ldtr)]
        .into_iter()
        .for_each(|(name, value)| set_segment(cache, name, value));
    for (slot, value) in [
        (Slot::GdtrBase, entry.gdtr.base),
        (Slot::GdtrLimit, entry.gdtr.limit.into()),
        (Slot::IdtrBase, entry.idtr.base),
        (Slot::IdtrLimit, entry.idtr.limit.into()),
        (Slot::Cr3, entry.cr3),
        (Slot::Rip, entry.rip),
        (Slot::Rsp, entry.rsp),
        (Slot::Rflags, entry.rflags | 2),
        (Slot::Dr6, DR6_AFTER_RESET),
        (Slot::Dr7, DR7_AFTER_RESET),
        (Slot::Cr2, 0),
        (Slot::Interruptibility, 0),
        (Slot::PendingDebug, 0),
    ] {
        cache.set(slot, value);
    }
}

/// Sets EFER, and the control with the value of EFER.LMA.
pub(super) fn set_mode(cache: &mut Cache, settings: &Settings, efer: u64) {
    let controls = settings.controls.word(Word::Entry);
    let long = if efer & efer::LMA != 0 { Control::Ia32eModeGuest.bit() } else { 0 };
    cache.set(Slot::EntryControls, controls | long);
    cache.set(Slot::Efer, efer);
}

/// CR0 as the guest is to see it.
pub(super) fn set_cr0(cache: &mut Cache, settings: &Settings, value: u64) {
    cache.set(Slot::Cr0, value | settings.owned_cr0());
    cache.set(Slot::Cr0ReadShadow, value);
}

/// CR4 as the guest is to see it.
pub(super) fn set_cr4(cache: &mut Cache, settings: &Settings, value: u64) {
    cache.set(Slot::Cr4, value | settings.owned_cr4());
    cache.set(Slot::Cr4ReadShadow, value & !settings.hidden_cr4());
}

pub(super) fn set_segment(cache: &mut Cache, name: SegmentName, value: Segment) {
    let GuestSegment { selector, rights, limit, base } = value.into();
    cache.set(Slot::of(name, Part::Selector), selector.into());
    cache.set(Slot::of(name, Part::Rights), rights.into());
    cache.set(Slot::of(name, Part::Limit), limit.into());
    cache.set(Slot::of(name, Part::Base), base);
}
