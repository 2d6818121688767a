// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;

use proptest::prelude::*;
use vm::vcpu::{AccessRights, EntryState, Event, Exception, Segment, SegmentName, TableRegister, VcpuState};
use zerocopy::{FromZeros as _, IntoBytes as _};

use super::*;
use crate::code::number;
use crate::vcpu::{Tables, Vcpu};
use crate::{Features, vmcb::tlb};

const FEATURES: Features = Features {
    asids: 16,
    nested_paging: true,
    next_rip: true,
    decode_assists: false,
    flush_by_asid: true,
    clean_bits: true,
    pause_filter: false,
    virtual_spec_ctrl: false,
};

/// A CPU of one image or another: what an image chooses is distinguished by `choice`.
fn vcpu(choice: u64) -> Vcpu<Box<Vmcb>> {
    let flat = Segment { selector: 0x18, rights: AccessRights::from_packed(0xc93), limit: u32::MAX, base: 0 };
    let entry = EntryState {
        rip: 0x10_0200,
        rsp: 0x1000,
        rflags: 2,
        gprs: core::array::from_fn(|i| i as u64),
        cr0: cr0::PE | cr0::PG,
        cr3: 0x9000,
        cr4: cr4::PAE,
        efer: efer::LME | efer::LMA,
        cs: Segment { selector: 0x10, rights: AccessRights::from_packed(0xa9b), ..flat },
        data: flat,
        tr: Segment { rights: AccessRights::from_packed(0x8b), ..Segment::default() },
        gdtr: TableRegister { base: 0x6000, limit: 31 },
        idtr: TableRegister::default(),
    };
    let tables = Tables { io_map: 0x1000 * choice, msr_map: 0x4_0000 * choice, nested_root: 0x60_0000 * choice };
    Vcpu::new(Box::new(Vmcb::zeroed()), FEATURES, choice as u32, tables, &entry)
}

fn saved(vcpu: &Vcpu<Box<Vmcb>>) -> Registers {
    let mut registers = Registers::new_zeroed();
    vcpu.save(&mut registers);
    registers
}

#[test]
fn an_images_own_choices_are_not_carried() {
    let (mut old, mut new) = (vcpu(1), vcpu(2));
    old.request_interrupt_window(true);
    old.watch_interrupt_return(true);
    old.watch_task_priority(true);
    old.set_gpr(Gpr::Rsp, 0x7777);
    new.restore(&saved(&old)).unwrap();
    let control = &new.vmcb().control;
    assert_eq!((control.asid, control.io_map_and_root()), (2, (0x2000, 0x8_0000, 0xc0_0000)));
    assert_eq!(control.intercept_misc1, crate::intercept::MISC1);
    assert_eq!((control.intercept_cr, control.virtual_interrupt.is_pending()), (0, false));
    assert_eq!((control.clean, control.tlb_control), (Clean::empty(), tlb::FLUSH_THIS_ASID));
    assert_eq!(new.vmcb().save.efer & efer::SVME, efer::SVME);
    assert_eq!(new.gpr(Gpr::Rsp), 0x7777);
}

impl crate::vmcb::Control {
    fn io_map_and_root(&self) -> (u64, u64, u64) {
        (self.iopm_base, self.msrpm_base, self.nested_cr3)
    }
}

#[test]
fn an_event_whose_delivery_was_interrupted_is_delivered_by_the_next_image() {
    let mut old = vcpu(1);
    old.vmcb.control.exit_code = number::NESTED_PAGE_FAULT;
    old.vmcb.control.next_rip = 0x1234;
    old.vmcb.control.exit_interrupt_info =
        EventInjection::new().with_is_valid(true).with_kind(event_type::SOFTWARE_INTERRUPT).with_vector(0x80);
    old.after_exit();
    let mut new = vcpu(2);
    new.restore(&saved(&old)).unwrap();
    assert_eq!(new.vmcb().control.event_injection, old.vmcb().control.event_injection);
    assert_eq!(new.vmcb().control.next_rip, 0x1234, "where it returns to");
    assert!(new.event_pending());
}

#[test]
fn an_event_that_was_injected_and_not_entered_is_carried_with_its_code() {
    let mut old = vcpu(1);
    old.inject(Event::Exception(Exception::PageFault { code: 6, address: 0xdead }));
    let mut new = vcpu(2);
    new.restore(&saved(&old)).unwrap();
    let event = new.vmcb().control.event_injection;
    assert_eq!((event.vector(), event.error_code(), event.has_error_code()), (14, 6, true));
    assert_eq!(new.cr2(), 0xdead);
    old.vmcb.control.event_injection = EventInjection::new();
    new.restore(&saved(&old)).unwrap();
    assert!(!new.event_pending(), "the last time counts");
}

#[test]
fn what_is_said_of_an_event_that_is_not_there_means_nothing() {
    let mut registers = saved(&vcpu(1));
    (registers.event_kind, registers.event_vector, registers.event_code) = (0xff, 0xff, u32::MAX.into());
    let mut new = vcpu(2);
    new.restore(&registers).unwrap();
    assert_eq!(new.vmcb().control.event_injection, EventInjection::new());
}

#[test]
fn shadow_and_task_priority_are_carried() {
    let mut old = vcpu(1);
    old.vmcb.control.interrupt_shadow = 1;
    old.set_task_priority(9);
    let mut new = vcpu(2);
    new.restore(&saved(&old)).unwrap();
    assert!(new.is_in_interrupt_shadow());
    assert_eq!(new.task_priority(), 9);
    assert_eq!(new.segment(SegmentName::Tr), old.segment(SegmentName::Tr));
}

fn refused(spoil: impl FnOnce(&mut Registers)) -> &'static str {
    let mut vcpu = vcpu(1);
    let before = vcpu.vmcb().as_bytes().to_vec();
    let mut registers = saved(&vcpu);
    spoil(&mut registers);
    let error = vcpu.restore(&registers).expect_err("refused");
    assert_eq!(vcpu.vmcb().as_bytes(), before, "what is refused changes nothing");
    error.field
}

#[test]
fn what_vmrun_would_refuse_is_refused() {
    assert_eq!(refused(|r| r.efer = efer::SVME.into()), "registers.efer");
    assert_eq!(refused(|r| r.cr0 = (1u64 << 32).into()), "registers.cr0");
    assert_eq!(refused(|r| r.cr0 = CR0_NW.into()), "registers.cr0");
    assert_eq!(refused(|r| r.cr0 = cr0::PG.into()), "registers.cr0");
    assert_eq!(refused(|r| r.cr3 = (1u64 << 52).into()), "registers.cr3");
    assert_eq!(refused(|r| r.cr4 = 0.into()), "registers.cr4");
    assert_eq!(refused(|r| r.cr4 = (1u64 << 40).into()), "registers.cr4");
    assert_eq!(refused(|r| r.dr6 = u64::MAX.into()), "registers.dr6");
    assert_eq!(refused(|r| r.dr7 = u64::MAX.into()), "registers.dr7");
    assert_eq!(refused(|r| r.segments[1].attributes = (LONG | DEFAULT_SIZE).into()), "registers.segments");
    assert_eq!(refused(|r| r.cpl = 4), "registers.cpl");
    assert_eq!(refused(|r| r.task_priority = 16), "registers.task_priority");
    assert_eq!(refused(|r| r.interrupt_shadow = 2), "registers.interrupt_shadow");
}

#[test]
fn events_that_are_none_are_refused() {
    let valid = event_flag::IS_VALID;
    let events = [
        (event_flag::HAS_CODE, 0, 0),
        (valid | 4, 0, 0x20),
        (valid, 1, 0x20),
        (valid, event_type::NMI, 3),
        (valid, event_type::EXCEPTION, 2),
        (valid, event_type::EXCEPTION, 32),
        (valid | event_flag::HAS_CODE, event_type::INTERRUPT, 0x20),
    ];
    for (flags, kind, vector) in events {
        let spoil = |r: &mut Registers| (r.event_flags, r.event_kind, r.event_vector) = (flags, kind, vector);
        assert_eq!(refused(spoil), "registers.event", "{flags} {kind} {vector}");
    }
}

proptest! {
    #[test]
    fn registers_come_through_as_they_were(bytes in prop::collection::vec(any::<u8>(), size_of::<Registers>())) {
        let mut registers = Registers::new_zeroed();
        registers.as_mut_bytes().copy_from_slice(&bytes);
        // Values that VMRUN refuses are checked above.
        (registers.cr0, registers.dr6, registers.dr7) = (0.into(), 0.into(), 0.into());
        registers.cr4 = (registers.cr4.get() & CR4_DEFINED).into();
        registers.efer = (registers.efer.get() & !efer::SVME).into();
        (registers.cpl, registers.task_priority, registers.interrupt_shadow, registers.zero) = (3, 9, 1, [0; 6]);
        (registers.event_flags, registers.event_kind, registers.event_vector) = (3, event_type::EXCEPTION, 14);
        let mut new = vcpu(2);
        new.restore(&registers).unwrap();
        prop_assert_eq!(saved(&new), registers);
    }

    #[test]
    fn any_registers_are_refused_or_come_through(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut registers = saved(&vcpu(1));
        for (at, value) in changes {
            let bytes = registers.as_mut_bytes();
            bytes[at.index(bytes.len())] = value;
        }
        let mut new = vcpu(2);
        if new.restore(&registers).is_ok() {
            let (again, mut third) = (saved(&new), vcpu(3));
            third.restore(&again).unwrap();
            prop_assert_eq!(saved(&third), again);
        }
    }
}
