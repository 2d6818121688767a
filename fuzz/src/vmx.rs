// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a CPU with VMX reports: its capability MSRs, and a VMCS after an exit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ::vmx::event::{Injection, has_unblocked_nmi};
use ::vmx::exit::{Cause, decode};
use ::vmx::{Capabilities, Control, Controls, Field, Field16, Field32, Field64, FieldNatural, Request, Vmcs};
use vm::exit::Exit;

use crate::input::Input;

/// Neither registers nor exits are trusted: what is settled is allowed, and each exit is decoded, whatever it says.
pub fn vmx(data: &[u8]) {
    let mut input = Input(data);
    if input.bool() {
        capabilities(&mut input);
    }
    let mut vmcs = Anything { input: RefCell::new(input), fields: RefCell::default() };
    let code = vmcs.read_32(Field32::ExitReason);
    if let Cause::Machine(Exit::Unknown { code: unknown }) = decode(&vmcs) {
        assert_eq!(unknown, code.into());
    }
    has_unblocked_nmi(&vmcs);
    if let Some(event) = Injection::interrupted(&vmcs) {
        event.write(&mut vmcs);
        assert_eq!(vmcs.read_32(Field32::EntryInterruptionInformation), event.interruption.into_bits());
    }
}

fn capabilities(input: &mut Input<'_>) {
    let registers: Vec<_> = (0..24).map(|_| input.number()).collect();
    let Ok(capabilities) = Capabilities::read(|msr| registers[(msr % 24) as usize]) else { return };
    let [needed, wanted, forbidden] = [0; 3].map(|_: u8| controls(input));
    let Ok(settled) = (Request { needed, wanted, forbidden }).settle(&capabilities) else { return };
    for control in Control::ALL.iter().filter(|control| settled.has(**control)) {
        assert!(capabilities.allowed(control.word()).may & control.bit() != 0, "{control:?}");
        assert!(!forbidden.has(*control), "{control:?}");
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

impl Anything<'_> {
    fn get(&self, field: impl Field) -> u64 {
        *self.fields.borrow_mut().entry(field.encoding()).or_insert_with(|| self.input.borrow_mut().number())
    }

    fn set(&mut self, field: impl Field, value: u64) {
        self.fields.borrow_mut().insert(field.encoding(), value);
    }
}

impl Vmcs for Anything<'_> {
    fn read_16(&self, field: Field16) -> u16 {
        self.get(field) as u16
    }
    fn read_32(&self, field: Field32) -> u32 {
        self.get(field) as u32
    }
    fn read_64(&self, field: Field64) -> u64 {
        self.get(field)
    }
    fn read_natural(&self, field: FieldNatural) -> u64 {
        self.get(field)
    }
    fn write_16(&mut self, field: Field16, value: u16) {
        self.set(field, value.into());
    }
    fn write_32(&mut self, field: Field32, value: u32) {
        self.set(field, value.into());
    }
    fn write_64(&mut self, field: Field64, value: u64) {
        self.set(field, value);
    }
    fn write_natural(&mut self, field: FieldNatural, value: u64) {
        self.set(field, value);
    }
}
