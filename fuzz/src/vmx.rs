// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reports of a CPU with VMX: its capability MSRs, and a VMCS after an exit or before an entry.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ::vmx::entry::{Bounds, State, check};
use ::vmx::ept::{self, Ept, Limits};
use ::vmx::event::{Injection, has_unblocked_nmi};
use ::vmx::exit::{Cause, decode};
use ::vmx::msr;
use ::vmx::{Capabilities, Control, Controls, Field, Field32, Request, Vmcs};
use paging::{Entry, Format};
use vm::exit::Exit;

use crate::input::Input;

/// Neither registers nor exits are trusted: resolved controls are allowed, and each exit is decoded, whatever it is.
pub fn vmx(data: &[u8]) {
    let mut input = Input(data);
    let bounds = if input.bool() { capabilities(&mut input) } else { None };
    let mut vmcs = Anything { input: RefCell::new(input), fields: RefCell::default() };
    let code = vmcs.read_32(Field32::ExitReason);
    if let Cause::Machine(Exit::Unknown { code: unknown }) = decode(&vmcs) {
        assert_eq!(unknown, u64::from(code));
    }
    has_unblocked_nmi(&vmcs);
    if let Some(event) = Injection::interrupted(&vmcs) {
        event.write(&mut vmcs);
        assert_eq!(vmcs.read_32(Field32::EntryInterruptionInformation), event.interruption.into_bits());
    }
    if let Some(bounds) = bounds {
        enter(&mut vmcs, &bounds);
    }
}

/// An entry is refused by a rule, or allowed; a state that is stored comes back equal.
fn enter(vmcs: &mut Anything<'_>, bounds: &Bounds) {
    let allowed = bounds.capabilities.allowed_controls();
    let state = State::load(vmcs, allowed);
    if let Err(rule) = check(&state, bounds) {
        assert!(rule.section.starts_with("27."), "{rule}");
    }
    state.store(vmcs, allowed);
    assert_eq!(State::load(vmcs, allowed), state);
    let limits =
        Limits { physical_bits: bounds.physical_bits, execute_only: true, pages_1_gib: true, pages_2_mib: true };
    for level in 1..=4 {
        let entry = state.guest.pdpte_0;
        assert!(ept::check(entry, level, &limits).is_ok() || Ept::decode(entry, level) != Entry::Absent);
    }
}

fn capabilities(input: &mut Input<'_>) -> Option<Bounds> {
    let is_raw = input.bool();
    let registers: Vec<_> = (0..24).map(|_| input.number()).collect();
    let raw = |msr: u32| registers[(msr % 24) as usize];
    let read = |msr| if is_raw { raw(msr) } else { consistent(msr, raw) };
    let capabilities = Capabilities::read(read).ok().or_else(|| {
        assert!(is_raw, "they contradict each other");
        None
    })?;
    let [needed, wanted, forbidden] = [0; 3].map(|_: u8| controls(input));
    let resolved = Request { needed, wanted, forbidden }.resolve(&capabilities).unwrap_or(Controls::NONE);
    for control in Control::ALL.iter().filter(|control| resolved.has(**control)) {
        assert!(capabilities.allowed(control.word()).may & control.bit() != 0, "{control:?}");
        assert!(!forbidden.has(*control), "{control:?}");
    }
    let [physical_bits, linear_bits] = [input.u8(), input.u8()];
    Some(Bounds { capabilities, physical_bits, linear_bits, perf_global_ctrl: input.number() })
}

/// The value of a register that contradicts no other one.
fn consistent(register: u32, raw: impl Fn(u32) -> u64) -> u64 {
    let allowing_what_is_required = |value: u64| value | value << 32;
    match register {
        msr::PINBASED_CTLS..=msr::ENTRY_CTLS | msr::PROCBASED_CTLS2 => allowing_what_is_required(raw(register)),
        msr::TRUE_PINBASED_CTLS..=msr::TRUE_ENTRY_CTLS => {
            let plain = allowing_what_is_required(raw(register - msr::TRUE_PINBASED_CTLS + msr::PINBASED_CTLS));
            plain & (raw(register) | u64::from(u32::MAX) << 32)
        }
        msr::CR0_FIXED1 | msr::CR4_FIXED1 => raw(register) | raw(register - 1),
        other => raw(other),
    }
}

fn controls(input: &mut Input<'_>) -> Controls {
    (0..input.u8() & 7).fold(Controls::NONE, |controls, _| controls.with(input.choose(Control::ALL)))
}

/// A VMCS that has anything in its fields, and the same each time it is read.
struct Anything<'a> {
    input: RefCell<Input<'a>>,
    fields: RefCell<BTreeMap<u32, u64>>,
}

impl Vmcs for Anything<'_> {
    fn vmread(&self, field: impl Field) -> u64 {
        *self.fields.borrow_mut().entry(field.encoding()).or_insert_with(|| self.input.borrow_mut().number())
    }

    fn vmwrite(&mut self, field: impl Field, value: u64) {
        self.fields.borrow_mut().insert(field.encoding(), value);
    }
}
