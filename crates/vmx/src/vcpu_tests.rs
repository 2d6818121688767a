// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::string::ToString;

use handover::state::Registers;
use vm::exit::Exit;
use vm::vcpu::{
    AccessRights, Event, Exception, Gpr, Rflags, Segment, SegmentName, TableRegister, VcpuState, cr0, dr6, efer,
};
use zerocopy::FromZeros as _;

use super::*;
use crate::control::Control;
use crate::entry::{Bounds, State, check};
use crate::event::{Interruption, kind};
use crate::field::{Access, Field, Field16, Field32, Field64, FieldNatural, Vmcs};
use crate::reason;
use crate::testing::{self, Image};

/// A CPU with a VMCS with the capabilities that the manual requires of a CPU.
struct Cpu {
    image: Image,
    live: RefCell<BTreeMap<u32, u64>>,
    task_priority: u8,
}

impl Vmcs for Cpu {
    fn vmread(&self, field: impl Field) -> u64 {
        self.image.vmread(field)
    }
    fn vmwrite(&mut self, field: impl Field, value: u64) {
        self.image.vmwrite(field, value);
    }
}

impl Loaded for Cpu {
    fn live(&self, register: Live) -> u64 {
        self.live.borrow().get(&(register as u32)).copied().unwrap_or_default()
    }
    fn set_live(&mut self, register: Live, value: u64) {
        self.live.borrow_mut().insert(register as u32, value);
    }
    fn task_priority_byte(&self) -> u8 {
        self.task_priority
    }
    fn set_task_priority_byte(&mut self, value: u8) {
        self.task_priority = value;
    }
}

fn settings() -> &'static Settings {
    let capabilities = testing::Cpu::complete().read().unwrap();
    let bounds = Bounds { capabilities, physical_bits: 46, linear_bits: 48, perf_global_ctrl: 0 };
    Box::leak(Box::new(Settings::for_cpu(bounds).unwrap()))
}

fn long_mode() -> EntryState {
    let flat = Segment { selector: 0x18, rights: AccessRights::DATA_32, limit: u32::MAX, base: 0 };
    EntryState {
        rip: 0x10_0200,
        rsp: 0x1000,
        rflags: 0,
        gprs: core::array::from_fn(|number| number as u64),
        cr0: cr0::PE | cr0::ET | cr0::PG,
        cr3: 0x9000,
        cr4: 0x20,
        efer: efer::LME,
        cs: Segment { selector: 0x10, rights: AccessRights::CODE_64, ..flat },
        data: flat,
        tr: Segment { rights: AccessRights::BUSY_TASK, limit: 0xffff, ..Segment::default() },
        gdtr: TableRegister { base: 0x6000, limit: 31 },
        idtr: TableRegister::default(),
    }
}

fn host() -> HostFields {
    let base = 0xffff_8000_0000_1000;
    HostFields {
        cr0: 0x8001_0033,
        cr3: 0x5000,
        cr4: 0x26a0,
        cs: 8,
        ss: 0x10,
        ds: 0x10,
        es: 0x10,
        tr: 0x18,
        rip: base,
        fs_base: 0,
        gs_base: base,
        tr_base: base,
        gdtr_base: base,
        idtr_base: base,
        pat: PAT_AFTER_RESET,
        efer: 0xd00,
        ..HostFields::default()
    }
}

fn vcpu_in(entry: &EntryState) -> Vcpu<Cpu> {
    let settings = settings();
    let image = Image::new(settings.capabilities().allowed_controls());
    let cpu = Cpu { image, live: RefCell::default(), task_priority: 0 };
    let tables = Tables { ept_root: 0x6000, msr_bitmap: 0x4000, virtual_apic: 0x3000 };
    let mut vcpu = Vcpu::new(cpu, settings, tables, 7, entry);
    vcpu.arrive(3);
    vcpu.load(host);
    vcpu
}

/// One that has been entered.
fn running() -> Vcpu<Cpu> {
    let mut vcpu = vcpu_in(&long_mode());
    vcpu.before_entry();
    vcpu
}

impl Vcpu<Cpu> {
    fn rule(&self) -> Option<std::string::String> {
        let state = State::load(&self.cpu, self.settings.capabilities().allowed_controls());
        check(&state, &self.settings.bounds).err().map(|rule| rule.to_string())
    }

    /// The CPU leaves the guest for this reason.
    fn leaves(&mut self, reason: u16, fields: &[(Field32, u32)]) -> Left {
        Field32::ExitReason.write(&mut self.cpu, reason.into());
        for field in [Field32::IdtVectoringInformation, Field32::ExitInstructionLength] {
            field.write(&mut self.cpu, 0);
        }
        fields.iter().for_each(|(field, value)| field.write(&mut self.cpu, *value));
        self.after_exit(Way::Exit)
    }

    fn interruptibility(&self) -> u32 {
        Field32::GuestInterruptibilityState.read(&self.cpu)
    }

    fn primary(&self, control: Control) -> bool {
        u64::from(Field32::PrimaryControls.read(&self.cpu)) & control.bit() != 0
    }
}

#[test]
fn a_new_vcpu_in_each_mode_passes_the_checks_of_an_entry() {
    let real = EntryState::at_startup_page(9);
    for entry in [long_mode(), real] {
        let mut vcpu = vcpu_in(&entry);
        vcpu.before_entry();
        assert_eq!(vcpu.rule(), None);
        assert_eq!((vcpu.rip(), vcpu.cr0(), vcpu.cr4()), (entry.rip, entry.cr0, entry.cr4));
        assert_eq!(Field16::Vpid.read(&vcpu.cpu), 3);
    }
}

#[test]
fn long_mode_is_active_in_the_control_and_in_efer() {
    let vcpu = running();
    assert_eq!(vcpu.efer(), efer::LME | efer::LMA);
    let entry = u64::from(Field32::EntryControls.read(&vcpu.cpu));
    assert!(entry & Control::Ia32eModeGuest.bit() != 0);
}

#[test]
fn only_what_is_asked_for_is_read_and_only_what_has_changed_is_written() {
    let mut vcpu = running();
    let fields = [(Field32::ExitInstructionLength, 2)];
    assert_eq!(vcpu.leaves(reason::CPUID, &fields), Left::For(Exit::Cpuid));
    let before = vcpu.cpu.image.fields_read().len();
    assert_eq!(vcpu.next_rip(), Some(0x10_0202));
    assert_eq!(vcpu.rip(), 0x10_0200, "read once");
    assert_eq!(vcpu.cpu.image.fields_read().len() - before, 3, "RIP, EFER, rights of CS");
    FieldNatural::GuestRsp.write(&mut vcpu.cpu, 0x5555);
    vcpu.set_rip(0x10_0202);
    vcpu.before_entry();
    assert_eq!(FieldNatural::GuestRip.read(&vcpu.cpu), 0x10_0202);
    assert_eq!(FieldNatural::GuestRsp.read(&vcpu.cpu), 0x5555, "the guest's own");
}

#[test]
fn a_vcpu_that_is_not_loaded_has_all_its_registers() {
    let mut vcpu = running();
    vcpu.leaves(reason::HLT, &[]);
    vcpu.cpu.set_live(Live::KernelGsBase, 0x1234);
    vcpu.unload();
    let before = vcpu.cpu.image.fields_read().len();
    let mut saved = Registers::new_zeroed();
    vcpu.save(&mut saved);
    assert_eq!((saved.rip.get(), saved.kernel_gs_base.get()), (0x10_0200, 0x1234));
    assert_eq!(vcpu.cpu.image.fields_read().len(), before, "no VMCS is current");
    vcpu.cpu.set_live(Live::KernelGsBase, 0 /* another vCPU's */);
    vcpu.load(|| panic!("it has not moved"));
    vcpu.before_entry();
    assert_eq!(vcpu.cpu.live(Live::KernelGsBase), 0x1234);
}

#[test]
fn a_vcpu_comes_back_equal_from_what_was_saved() {
    let mut first = running();
    first.leaves(reason::HLT, &[]);
    first.set_gpr(Gpr::Rbx, 77);
    first.set_task_priority(9);
    first.inject(Event::Exception(Exception::GeneralProtection(0x50)));
    first.unload();
    let mut saved = Registers::new_zeroed();
    first.save(&mut saved);
    let mut second = vcpu_in(&EntryState::at_startup_page(1));
    second.restore(&saved).unwrap();
    let mut again = Registers::new_zeroed();
    second.save(&mut again);
    assert_eq!(saved, again);
    second.before_entry();
    assert_eq!(second.rule(), None);
    let event = Interruption::from_bits(Field32::EntryInterruptionInformation.read(&second.cpu));
    assert!(event.is_valid() && event.vector() == 13 && event.has_error_code());
}

#[test]
fn registers_that_no_entry_takes_are_refused_and_change_nothing() {
    let mut vcpu = running();
    vcpu.leaves(reason::HLT, &[]);
    let mut saved = Registers::new_zeroed();
    vcpu.save(&mut saved);
    type Spoil = fn(&mut Registers);
    let spoilt: [(Spoil, &str); 8] = [
        (|it| it.efer = (efer::LME | efer::LMA | efer::SVME).into(), "registers.efer"),
        (|it| it.cr3 = (1 << 60).into(), "CR3"),
        (|it| it.kernel_gs_base = (1 << 60).into(), "registers.kernel_gs_base"),
        (|it| it.sfmask = (1 << 40).into(), "registers.sfmask"),
        (|it| it.cpl = 3, "registers.cpl"),
        (|it| it.interrupt_shadow = 2, "registers.interrupt_shadow"),
        (|it| it.rip = (1 << 60).into(), "RIP"),
        (|it| (it.event_flags, it.event_kind) = (1, 7), "registers.event"),
    ];
    for (spoil, field) in spoilt {
        let mut bad = saved;
        spoil(&mut bad);
        let error = vcpu.restore(&bad).expect_err(field);
        assert!(error.field.contains(field), "{field}: {error:?}");
    }
    let mut again = Registers::new_zeroed();
    vcpu.save(&mut again);
    assert_eq!(saved, again);
}

#[test]
fn a_guest_in_pae_paging_is_not_handed_over() {
    let mut vcpu = running();
    vcpu.leaves(reason::HLT, &[]);
    let mut saved = Registers::new_zeroed();
    vcpu.save(&mut saved);
    (saved.efer, saved.segments[1].attributes) = (0.into(), AccessRights::CODE_32.packed().into());
    let error = vcpu.restore(&saved).unwrap_err();
    assert!(error.reason.contains("PAE"), "{error:?}");
}

#[test]
fn an_event_whose_delivery_was_interrupted_is_delivered_again() {
    let mut vcpu = running();
    let event = Interruption::new().with_is_valid(true).with_kind(kind::INTERRUPT).with_vector(0x41);
    vcpu.leaves(
        reason::EXTERNAL_INTERRUPT,
        &[(Field32::IdtVectoringInformation, event.into_bits()), (Field32::ExitInterruptionInformation, 0)],
    );
    assert!(vcpu.event_pending() && vcpu.was_delivering());
    assert_eq!(vcpu.withdraw_interrupt(), Some(0x41));
    assert!(!vcpu.event_pending());
}

#[test]
fn an_nmi_whose_delivery_was_interrupted_does_not_block_itself() {
    let mut vcpu = running();
    Field32::GuestInterruptibilityState.write(&mut vcpu.cpu, 8);
    let event = Interruption::new().with_is_valid(true).with_kind(kind::NMI).with_vector(2);
    vcpu.leaves(
        reason::EXTERNAL_INTERRUPT,
        &[(Field32::IdtVectoringInformation, event.into_bits()), (Field32::ExitInterruptionInformation, 0)],
    );
    vcpu.before_entry();
    assert_eq!((vcpu.interruptibility(), vcpu.rule()), (0, None));
}

#[test]
fn the_end_of_an_nmis_handler_is_reported_and_a_handler_that_runs_blocks_nmis() {
    let mut vcpu = running();
    vcpu.leaves(reason::HLT, &[]);
    vcpu.inject(Event::Nmi);
    vcpu.watch_interrupt_return(true);
    vcpu.before_entry();
    assert!(vcpu.primary(Control::NmiWindowExiting));
    assert_eq!((vcpu.interruptibility(), vcpu.rule()), (0, None), "its delivery blocks the next one");
    assert_eq!(vcpu.leaves(reason::NMI_WINDOW, &[]), Left::For(Exit::NmiWindow));
    vcpu.watch_interrupt_return(false);
    vcpu.watch_interrupt_return(true);
    vcpu.before_entry();
    assert_eq!(vcpu.interruptibility(), 8, "it was handed over in its handler");
}

#[test]
fn a_physical_nmi_is_the_hosts_to_call() {
    let mut vcpu = running();
    let nmi = Interruption::new().with_is_valid(true).with_kind(kind::NMI).with_vector(2);
    let fields = [(Field32::ExitInterruptionInformation, nmi.into_bits())];
    assert_eq!(vcpu.leaves(reason::EXCEPTION_OR_NMI, &fields), Left::ForNmi);
    assert!(!vcpu.event_pending());
}

#[test]
fn the_causes_of_a_debug_exception_are_in_dr6_and_its_injection_ends_general_detect() {
    let mut vcpu = running();
    FieldNatural::ExitQualification.write(&mut vcpu.cpu, dr6::BS);
    let exception = Interruption::new().with_is_valid(true).with_kind(kind::EXCEPTION).with_vector(1);
    let fields = [(Field32::ExitInterruptionInformation, exception.into_bits())];
    FieldNatural::GuestDr7.write(&mut vcpu.cpu, 0x2400);
    assert_eq!(vcpu.leaves(reason::EXCEPTION_OR_NMI, &fields), Left::For(Exit::Exception(Exception::Debug)));
    assert_eq!(vcpu.dr6() & dr6::BS, dr6::BS);
    vcpu.inject(Event::Exception(Exception::Debug));
    vcpu.before_entry();
    assert_eq!(FieldNatural::GuestDr7.read(&vcpu.cpu), 0x400);
    assert_eq!(vcpu.cpu.live(Live::Dr6) & dr6::BS, dr6::BS);
}

#[test]
fn a_step_over_an_instruction_in_a_shadow_is_pending() {
    let mut vcpu = running();
    Field32::GuestInterruptibilityState.write(&mut vcpu.cpu, 1);
    FieldNatural::GuestRflags.write(&mut vcpu.cpu, Rflags::INTERRUPT.bits() | 2);
    vcpu.leaves(reason::EXTERNAL_INTERRUPT, &[(Field32::ExitInterruptionInformation, 0)]);
    vcpu.set_rflags(vcpu.rflags() | Rflags::TRAP);
    vcpu.before_entry();
    assert_eq!((FieldNatural::GuestPendingDebugExceptions.read(&vcpu.cpu), vcpu.rule()), (dr6::BS, None));
}

#[test]
fn a_change_of_ne_is_seen_by_the_guest_and_carried_out_by_the_cpu() {
    let mut vcpu = running();
    // MOV to CR0 from RAX.
    FieldNatural::ExitQualification.write(&mut vcpu.cpu, 0);
    vcpu.switched.gprs[0] = cr0::PE | cr0::ET | cr0::PG | 1 << 5;
    assert_eq!(vcpu.leaves(reason::CONTROL_REGISTER, &[]), Left::GoesOn);
    vcpu.before_entry();
    assert_eq!(vcpu.rip(), 0x10_0200, "it is executed again");
    assert_eq!(vcpu.cr0() & 1 << 5, 1 << 5);
    let (mask, shadow) = (FieldNatural::Cr0GuestHostMask.read(&vcpu.cpu), FieldNatural::Cr0ReadShadow.read(&vcpu.cpu));
    assert_eq!((shadow ^ vcpu.switched.gprs[0]) & mask, 0, "and does not exit again");
}

#[test]
fn vmxe_is_refused_as_on_a_cpu_without_vmx() {
    let mut vcpu = running();
    // MOV to CR4 from RAX.
    FieldNatural::ExitQualification.write(&mut vcpu.cpu, 4);
    vcpu.switched.gprs[0] = 0x2020;
    assert_eq!(vcpu.leaves(reason::CONTROL_REGISTER, &[]), Left::GoesOn);
    vcpu.before_entry();
    let event = Interruption::from_bits(Field32::EntryInterruptionInformation.read(&vcpu.cpu));
    assert!(event.is_valid() && event.vector() == 13, "{event:?}");
    assert_eq!(vcpu.cr4(), 0x20);
}

#[test]
fn a_refused_entry_names_its_rule() {
    let mut vcpu = running();
    FieldNatural::GuestRflags.write(&mut vcpu.cpu, 0);
    Field32::ExitReason.write(&mut vcpu.cpu, reason::ENTRY_FAILED | u32::from(reason::ENTRY_FAILED_BY_GUEST_STATE));
    FieldNatural::ExitQualification.write(&mut vcpu.cpu, 0);
    assert_eq!(vcpu.after_exit(Way::Exit), Left::For(Exit::EntryRefused));
    let refusal = vcpu.refusal().expect("a rule is violated").to_string();
    assert!(refusal.contains("RFLAGS") && refusal.contains("27.3.1.4"), "{refusal}");
}

#[test]
fn an_instruction_that_fails_names_its_error() {
    let mut vcpu = running();
    Field32::VmInstructionError.write(&mut vcpu.cpu, 8);
    assert_eq!(vcpu.after_exit(Way::Failed), Left::For(Exit::EntryRefused));
    assert_eq!(vcpu.refusal().map(|refusal| refusal.to_string()).as_deref(), Some("VM entry with invalid host state"));
}

#[test]
fn a_vcpu_that_moves_has_the_fields_of_its_new_cpu_and_flushes() {
    let mut vcpu = running();
    assert_eq!((vcpu.take_flush(), vcpu.take_flush()), (Some(3), None));
    vcpu.leaves(reason::HLT, &[]);
    vcpu.unload();
    vcpu.arrive(5);
    vcpu.load(|| HostFields { gs_base: 0x7000, ..host() });
    assert_eq!(FieldNatural::HostGsBase.read(&vcpu.cpu), 0x7000);
    assert_eq!((Field16::Vpid.read(&vcpu.cpu), vcpu.take_flush()), (5, Some(5)));
    assert_eq!(vcpu.switched.host_rsp, 0, "another stack");
}

#[test]
fn the_task_priority_is_in_the_virtual_apic_page() {
    let mut vcpu = running();
    vcpu.set_task_priority(5);
    assert_eq!((vcpu.cpu.task_priority, vcpu.task_priority()), (0x50, 5));
    vcpu.watch_task_priority(true);
    vcpu.before_entry();
    assert!(vcpu.primary(Control::Cr8LoadExiting));
    assert_eq!(Field64::VirtualApicAddress.read(&vcpu.cpu), 0x3000);
}

#[test]
fn segments_are_as_the_guest_has_them() {
    let vcpu = running();
    assert_eq!(vcpu.segment(SegmentName::Cs).rights, AccessRights::CODE_64);
    assert_eq!((vcpu.cpl(), vcpu.segment(SegmentName::Tr).limit), (0, 0xffff));
}
