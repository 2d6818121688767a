// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::testing::Cpu;

/// Clears the bit of a control in its MSR's half of 1-settings.
fn refuse(cpu: &mut Cpu, control: Control, msrs: &[u32]) {
    for &msr in msrs {
        cpu.set(msr, cpu.get(msr) & !(control.bit() << 32));
    }
}

fn needing(control: Control) -> Request {
    Request { needed: Controls::of(&[control]), ..Request::default() }
}

fn wanting(controls: &[Control]) -> Request {
    Request { wanted: Controls::of(controls), ..Request::default() }
}

#[test]
fn what_the_cpu_requires_is_there_and_nothing_else_without_a_request() {
    let resolved = Request::default().resolve(&Cpu::complete().read().unwrap()).unwrap();
    assert_eq!(resolved.word(Word::Pin), 0x16);
    assert_eq!(resolved.word(Word::Primary), 0x0400_6172);
    assert_eq!((resolved.word(Word::Secondary), resolved.word(Word::Tertiary)), (0, 0));
    assert_eq!(resolved.word(Word::Exit), 0x0003_6dfb);
}

#[test]
fn a_needed_control_that_is_missing_is_named_with_its_register_and_a_hint() {
    let mut cpu = Cpu::complete();
    refuse(&mut cpu, Control::EnableEpt, &[msr::PROCBASED_CTLS2]);
    let refused = needing(Control::EnableEpt).resolve(&cpu.read().unwrap()).unwrap_err();
    assert_eq!(refused, Unusable::Missing { control: Control::EnableEpt, msr: msr::PROCBASED_CTLS2 });
    assert_eq!(
        refused.to_string(),
        "VMX: no VM-execution control \"enable EPT\" (IA32_VMX_PROCBASED_CTLS2, 0x48b): \
         take a CPU that has it, or have the hypervisor outside this machine offer it"
    );
}

#[test]
fn a_control_of_a_word_that_no_control_activates_is_missing_by_the_primary_words_register() {
    let mut cpu = Cpu::complete();
    let both = [msr::PROCBASED_CTLS, msr::TRUE_PROCBASED_CTLS];
    refuse(&mut cpu, Control::ActivateSecondaryControls, &both);
    let refused = needing(Control::EnableEpt).resolve(&cpu.read().unwrap()).unwrap_err();
    let expected = Unusable::Missing { control: Control::ActivateSecondaryControls, msr: msr::TRUE_PROCBASED_CTLS };
    assert_eq!(refused, expected);
}

#[test]
fn the_firmwares_lock_is_reported_with_where_to_change_it() {
    assert_eq!(
        Unusable::DisabledByFirmware.to_string(),
        "VMX: disabled by the firmware (IA32_FEATURE_CONTROL, 0x3a, is locked): \
         enable virtualization (VT-x) in its set-up"
    );
}

#[test]
fn a_wanted_control_is_left_out_where_the_cpu_or_its_prerequisite_lacks() {
    let mut cpu = Cpu::complete();
    refuse(&mut cpu, Control::UseTprShadow, &[msr::PROCBASED_CTLS, msr::TRUE_PROCBASED_CTLS]);
    let wanted = [
        Control::ProcessPostedInterrupts,
        Control::VirtualInterruptDelivery,
        Control::UseTprShadow,
        Control::ExternalInterruptExiting,
        Control::AcknowledgeInterruptOnExit,
        Control::EnableVpid,
    ];
    let resolved = wanting(&wanted).resolve(&cpu.read().unwrap()).unwrap();
    assert!(resolved.has(Control::EnableVpid) && resolved.has(Control::AcknowledgeInterruptOnExit));
    assert!(!resolved.has(Control::VirtualInterruptDelivery) && !resolved.has(Control::ProcessPostedInterrupts));
    let all = wanting(&wanted).resolve(&Cpu::complete().read().unwrap()).unwrap();
    assert!(wanted.iter().all(|control| all.has(*control)));
}

#[test]
fn a_needed_control_without_its_prerequisite_names_that() {
    let refused = needing(Control::VirtualNmis).resolve(&Cpu::complete().read().unwrap()).unwrap_err();
    assert_eq!(refused, Unusable::Missing { control: Control::NmiExiting, msr: msr::TRUE_PINBASED_CTLS });
}

#[test]
fn a_forbidden_control_is_0_or_the_cpu_cannot_be_used() {
    let without = Controls::of(&[Control::Cr3LoadExiting]);
    let request = Request { wanted: without, forbidden: without, ..Request::default() };
    let resolved = request.resolve(&Cpu::complete().read().unwrap()).unwrap();
    assert!(!resolved.has(Control::Cr3LoadExiting), "the TRUE MSR lets it be 0");
    let mut old = Cpu::complete();
    old.set(msr::BASIC, old.get(msr::BASIC) & !(1 << 55));
    let refused = request.resolve(&old.read().unwrap());
    assert_eq!(refused, Err(Unusable::Forced { control: Control::Cr3LoadExiting, msr: msr::PROCBASED_CTLS }));
}

/// MSRs of words that have 32 bits, plain and exact.
const MSRS: [(u32, u32); 5] = [
    (msr::PINBASED_CTLS, msr::TRUE_PINBASED_CTLS),
    (msr::PROCBASED_CTLS, msr::TRUE_PROCBASED_CTLS),
    (msr::EXIT_CTLS, msr::TRUE_EXIT_CTLS),
    (msr::ENTRY_CTLS, msr::TRUE_ENTRY_CTLS),
    (msr::PROCBASED_CTLS2, msr::PROCBASED_CTLS2),
];

fn some_controls() -> impl Strategy<Value = Controls> {
    prop::collection::vec(prop::sample::select(Control::ALL), 0..12).prop_map(|controls| Controls::of(&controls))
}

proptest! {
    #[test]
    fn resolved_controls_are_allowed_and_have_what_is_needed_and_nothing_forbidden(
        needed in some_controls(),
        wanted in some_controls(),
        forbidden in some_controls(),
        holes in prop::collection::vec((0..MSRS.len(), 0u32..32), 0..8),
    ) {
        let mut cpu = Cpu::complete();
        for (at, bit) in holes {
            let (plain, exact) = MSRS[at];
            if cpu.get(plain) & 1 << bit == 0 {
                cpu.set(plain, cpu.get(plain) & !(1 << 32 << bit));
                cpu.set(exact, cpu.get(exact) & !(1 << 32 << bit));
            }
        }
        let capabilities = cpu.read().unwrap();
        let request = Request { needed, wanted, forbidden };
        match request.resolve(&capabilities) {
            Err(reason) => prop_assert!(!reason.to_string().is_empty()),
            Ok(resolved) => {
                for word in Word::ALL {
                    let (value, allowed) = (resolved.word(word), capabilities.allowed(word));
                    let is_active = word.activated_by().is_none_or(|activator| resolved.has(activator));
                    prop_assert_eq!(value & !allowed.may, 0);
                    prop_assert!(!is_active || allowed.must & !value == 0);
                    prop_assert_eq!(value & forbidden.word(word), 0);
                    prop_assert_eq!(needed.word(word) & !value, 0);
                }
                let orphan = REQUIREMENTS.iter().find(|it| resolved.has(it.control) && !resolved.has(it.requires));
                prop_assert_eq!(orphan, None);
            }
        }
    }
}
