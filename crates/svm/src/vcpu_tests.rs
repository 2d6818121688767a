// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;

use vm::exit::Exit;
use vm::vcpu::{
    AccessRights, EntryState, Event, Exception, Exceptions, Gpr, Segment, SegmentName, TableRegister, VcpuState, cr0,
    efer,
};

use zerocopy::IntoBytes as _;

use super::{Tables, Vcpu};
use crate::Features;
use crate::code::number;
use crate::intercept::Misc1;
use crate::vmcb::{Clean, EventInjection, Vmcb, event_type};

const FEATURES: Features = Features {
    asids: 16,
    nested_paging: true,
    next_rip: false,
    decode_assists: false,
    flush_by_asid: true,
    clean_bits: true,
    pause_filter: false,
    virtual_spec_ctrl: false,
};

fn entry() -> EntryState {
    let flat = Segment { selector: 0x18, rights: AccessRights::from_packed(0xc93), limit: u32::MAX, base: 0 };
    EntryState {
        rip: 0x10_0200,
        rsp: 0x1000,
        rflags: 0,
        gprs: core::array::from_fn(|i| i as u64),
        cr0: cr0::PE | cr0::PG,
        cr3: 0x9000,
        cr4: 0x20,
        efer: efer::LME | efer::LMA,
        cs: Segment { selector: 0x10, rights: AccessRights::from_packed(0xa9b), ..flat },
        data: flat,
        tr: Segment { rights: AccessRights::from_packed(0x8b), ..Segment::default() },
        gdtr: TableRegister { base: 0x6000, limit: 31 },
        idtr: TableRegister::default(),
    }
}

fn vcpu_with(features: Features) -> Vcpu<Box<Vmcb>> {
    let tables = Tables { io_map: 0x1000, msr_map: 0x4000, nested_root: 0x6000 };
    Vcpu::new(Box::new(Vmcb::zeroed()), features, 1, tables, &entry())
}

fn vcpu() -> Vcpu<Box<Vmcb>> {
    vcpu_with(FEATURES)
}

#[test]
fn a_new_cpu_is_in_the_state_the_loader_described() {
    let vcpu = vcpu();
    assert_eq!(vcpu.rip(), 0x10_0200);
    assert_eq!(vcpu.gpr(Gpr::Rsp), 0x1000);
    assert_eq!(vcpu.gpr(Gpr::Rsi), 6);
    assert_eq!(vcpu.segment(SegmentName::Cs).selector, 0x10);
    assert_eq!(vcpu.segment(SegmentName::Gs).selector, 0x18);
    assert_eq!(vcpu.vmcb().save.rflags, 2);
}

/// Otherwise the guest's own handler would get it, or without one a triple fault that resembles the guest's own.
#[test]
fn a_machine_check_leaves_every_guest() {
    let bytes = vcpu().vmcb().as_bytes()[8..12].to_vec();
    assert_eq!(bytes[2] & 1 << 2, 1 << 2, "offset 008h, bit 18");
}

#[test]
fn the_guest_never_sees_svme_and_the_cpu_always_does() {
    let mut vcpu = vcpu();
    vcpu.set_efer(efer::LME);
    assert_eq!(vcpu.efer(), efer::LME);
    assert_eq!(vcpu.vmcb().save.efer, efer::LME | efer::SVME);
}

#[test]
fn a_page_fault_is_injected_with_code_and_address() {
    let mut vcpu = vcpu();
    vcpu.inject(Event::Exception(Exception::PageFault { code: 6, address: 0x1234 }));
    let injected = vcpu.vmcb().control.event_injection;
    assert_eq!((injected.vector(), injected.kind(), injected.error_code()), (14, event_type::EXCEPTION, 6));
    assert!(injected.is_valid() && injected.has_error_code());
    assert_eq!(vcpu.vmcb().save.cr2, 0x1234);
}

#[test]
fn the_task_priority_is_watched_by_intercepting_writes_of_cr8_alone() {
    let mut vcpu = vcpu();
    vcpu.after_exit();
    vcpu.watch_task_priority(true);
    assert_eq!(vcpu.vmcb().control.intercept_cr, 1 << 24);
    assert!(!vcpu.vmcb().control.clean.contains(Clean::INTERCEPTS));
    vcpu.after_exit();
    vcpu.watch_task_priority(true);
    assert!(vcpu.vmcb().control.clean.contains(Clean::INTERCEPTS), "nothing has changed");
    vcpu.watch_task_priority(false);
    assert_eq!(vcpu.vmcb().control.intercept_cr, 0);
}

#[test]
fn an_interrupt_window_is_an_intercepted_virtual_interrupt_and_can_be_withdrawn() {
    let mut vcpu = vcpu();
    vcpu.request_interrupt_window(true);
    assert!(vcpu.vmcb().control.virtual_interrupt.is_pending());
    assert!(vcpu.vmcb().control.intercept_misc1.contains(Misc1::VINTR));
    vcpu.request_interrupt_window(false);
    assert!(!vcpu.vmcb().control.virtual_interrupt.is_pending());
    assert!(!vcpu.vmcb().control.intercept_misc1.contains(Misc1::VINTR));
}

#[test]
fn an_interrupt_waits_for_if_and_for_the_end_of_a_shadow() {
    let mut vcpu = vcpu();
    assert!(!vcpu.can_take_interrupt());
    vcpu.vmcb.save.rflags |= 1 << 9;
    assert!(vcpu.can_take_interrupt());
    vcpu.vmcb.control.interrupt_shadow = 1;
    assert!(!vcpu.can_take_interrupt());
    vcpu.set_rip(0x10);
    assert!(vcpu.can_take_interrupt());
}

fn exit_during(kind: u8, vector: u8, features: Features) -> bool {
    let mut vcpu = vcpu_with(features);
    vcpu.vmcb.control.exit_code = number::NESTED_PAGE_FAULT;
    vcpu.vmcb.control.exit_interrupt_info =
        EventInjection::new().with_is_valid(true).with_kind(kind).with_vector(vector);
    vcpu.after_exit();
    vcpu.event_pending()
}

#[test]
fn an_event_whose_delivery_an_exit_interrupted_is_delivered_again() {
    assert!(exit_during(event_type::INTERRUPT, 0x30, FEATURES));
    assert!(exit_during(event_type::EXCEPTION, 14, FEATURES));
}

#[test]
fn a_software_interrupt_is_executed_again_where_rip_still_points_at_it() {
    assert!(!exit_during(event_type::SOFTWARE_INTERRUPT, 0x80, FEATURES));
    assert!(!exit_during(event_type::EXCEPTION, 3, FEATURES));
    assert!(exit_during(event_type::SOFTWARE_INTERRUPT, 0x80, Features { next_rip: true, ..FEATURES }));
}

#[test]
fn parts_that_were_touched_are_not_clean_any_more() {
    let mut vcpu = vcpu();
    vcpu.vmcb.control.exit_code = number::CPUID;
    assert_eq!(vcpu.after_exit(), Exit::Cpuid);
    assert_eq!(vcpu.vmcb().control.clean, Clean::all());
    vcpu.set_efer(0);
    assert!(!vcpu.vmcb().control.clean.contains(Clean::CONTROL_REGISTERS));
    assert!(vcpu.vmcb().control.clean.contains(Clean::SEGMENTS));
}

#[test]
fn a_guest_is_stopped_at_clock_reads_only_while_that_is_asked_for() {
    let mut vcpu = vcpu();
    let (misc1, misc2) = crate::intercept::CLOCK_READS;
    let is_stopped = |vcpu: &Vcpu<_>| {
        let control = &vcpu.vmcb().control;
        (control.intercept_misc1.contains(misc1), control.intercept_misc2.contains(misc2))
    };
    assert_eq!(is_stopped(&vcpu), (false, false));
    vcpu.watch_clock_reads(true);
    assert_eq!(is_stopped(&vcpu), (true, true));
    assert!(!vcpu.vmcb().control.clean.contains(Clean::INTERCEPTS));
    vcpu.watch_clock_reads(false);
    assert_eq!(is_stopped(&vcpu), (false, false));
}

#[test]
fn on_another_cpu_nothing_is_clean_and_translations_are_flushed() {
    let mut vcpu = vcpu();
    vcpu.vmcb.control.exit_code = number::CPUID;
    vcpu.after_exit();
    vcpu.arrive(7);
    let control = &vcpu.vmcb().control;
    assert_eq!((control.asid, control.clean), (7, Clean::empty()));
    assert_ne!(control.tlb_control, super::tlb::KEEP);
}

#[test]
fn an_iret_is_intercepted_while_it_is_watched_for() {
    let mut vcpu = vcpu();
    vcpu.after_exit();
    vcpu.watch_interrupt_return(true);
    assert!(vcpu.vmcb().control.intercept_misc1.contains(Misc1::IRET));
    assert!(!vcpu.vmcb().control.clean.contains(Clean::INTERCEPTS));
    vcpu.watch_interrupt_return(false);
    assert!(!vcpu.vmcb().control.intercept_misc1.contains(Misc1::IRET));
}

#[test]
fn a_single_steps_exception_reports_it_in_dr6() {
    let mut vcpu = vcpu();
    vcpu.after_exit();
    vcpu.inject(Event::Exception(Exception::SingleStep));
    assert_eq!(vcpu.vmcb().control.event_injection.vector(), 1);
    assert_eq!(vcpu.vmcb().save.dr6, 0xffff_4ff0);
    assert!(!vcpu.vmcb().control.clean.contains(Clean::DEBUG_REGISTERS));
}

#[test]
fn a_guest_leaves_for_debug_exceptions_and_alignment_checks_alone() {
    let intercepted = Exceptions::from_bits_retain(vcpu().vmcb().control.intercept_exceptions);
    assert!(intercepted.contains(Exceptions::DB | Exceptions::AC));
    assert!((intercepted - Exceptions::DB - Exceptions::AC - Exceptions::MC).is_empty());
}

#[test]
fn a_debug_exception_of_the_guests_keeps_its_causes_and_ends_general_detect() {
    let mut vcpu = vcpu();
    (vcpu.vmcb.save.dr6, vcpu.vmcb.save.dr7) = (0xffff_0ff1, 0x2402);
    vcpu.after_exit();
    vcpu.inject(Event::Exception(Exception::Debug));
    let (control, save) = (&vcpu.vmcb().control, &vcpu.vmcb().save);
    assert_eq!((control.event_injection.vector(), control.event_injection.has_error_code()), (1, false));
    assert_eq!((save.dr6, save.dr7), (0xffff_0ff1, 0x402));
    assert!(!control.clean.contains(Clean::DEBUG_REGISTERS));
}

#[test]
fn an_alignment_check_is_injected_with_its_error_code() {
    let mut vcpu = vcpu();
    vcpu.inject(Event::Exception(Exception::Fault { vector: 17, code: Some(0) }));
    let injected = vcpu.vmcb().control.event_injection;
    assert_eq!((injected.vector(), injected.kind(), injected.error_code()), (17, event_type::EXCEPTION, 0));
    assert!(injected.is_valid() && injected.has_error_code());
}

#[test]
fn an_event_that_is_dropped_is_not_delivered_and_an_nmi_is_named() {
    for (event, is_nmi) in [(Event::Nmi, true), (Event::Exception(Exception::InvalidOpcode), false)] {
        let mut vcpu = vcpu();
        vcpu.inject(event);
        assert_eq!(vcpu.drop_event(), is_nmi);
        assert!(!vcpu.event_pending());
    }
    assert!(!vcpu().drop_event(), "there is none");
}

#[test]
fn spinning_is_noticed_only_where_the_cpu_counts() {
    let pause = |pause_filter| {
        let vcpu = vcpu_with(Features { pause_filter, ..FEATURES });
        let control = &vcpu.vmcb().control;
        (control.intercept_misc1.contains(Misc1::PAUSE), control.pause_filter_count)
    };
    assert_eq!(pause(false), (false, 0), "one exit for each would be too many");
    let (is_intercepted, count) = pause(true);
    assert!(is_intercepted && count >= 1000);
}

#[test]
fn an_emulated_instruction_ends_the_resume_flag() {
    let mut vcpu = vcpu();
    vcpu.vmcb.save.rflags |= 1 << 16;
    vcpu.set_rip(0x10);
    assert_eq!(vcpu.vmcb().save.rflags & 1 << 16, 0);
}

#[test]
fn spec_ctrl_is_the_control_blocks_where_the_cpu_exchanges_it() {
    for virtual_spec_ctrl in [false, true] {
        let mut vcpu = vcpu_with(Features { virtual_spec_ctrl, ..FEATURES });
        vcpu.set_spec_ctrl(4);
        assert_eq!((vcpu.spec_ctrl(), vcpu.vmcb().save.spec_ctrl), (4, if virtual_spec_ctrl { 4 } else { 0 }));
        vcpu.reset(&entry());
        assert_eq!((vcpu.spec_ctrl(), vcpu.vmcb().save.spec_ctrl), (0, 0));
    }
}
