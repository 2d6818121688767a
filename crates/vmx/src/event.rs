// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts and exceptions on their way into the guest, and those that an exit has interrupted (sections 25.8.3 and
//! 28.2.4).

use bitfield_struct::bitfield;
use vm::vcpu::{Event, vector};

use crate::field::{Field32, FieldNatural, Vmcs};
use crate::reason;

/// An interruption, as entries inject it and exits describe it.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Interruption {
    /// Interrupt or exception vector.
    pub vector: u8,
    /// One of [`kind`].
    #[bits(3)]
    pub kind: u8,
    /// It has an error code.
    pub has_error_code: bool,
    /// Exits: IRET had ended the blocking of NMIs.
    pub has_unblocked_nmi: bool,
    #[bits(18)]
    pub reserved: u32,
    /// True if there is one.
    pub is_valid: bool,
}

/// Kinds of an [`Interruption`] (section 25.8.3).
#[allow(missing_docs, reason = "the names are the manual's")]
pub mod kind {
    pub const INTERRUPT: u8 = 0;
    pub const NMI: u8 = 2;
    pub const EXCEPTION: u8 = 3;
    pub const SOFTWARE_INTERRUPT: u8 = 4;
    /// INT1.
    pub const PRIVILEGED_EXCEPTION: u8 = 5;
    /// INT3 and INTO.
    pub const SOFTWARE_EXCEPTION: u8 = 6;
    pub const OTHER: u8 = 7;

    /// Returns whether an instruction raises it, whose length the delivery needs.
    pub const fn is_software(kind: u8) -> bool {
        matches!(kind, SOFTWARE_INTERRUPT | PRIVILEGED_EXCEPTION | SOFTWARE_EXCEPTION)
    }
}

/// The vector of #DF.
const DOUBLE_FAULT: u8 = 8;

/// An event for the next entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// The interruption.
    pub interruption: Interruption,
    /// Its error code, where it has one.
    pub error_code: u32,
    /// Bytes of the instruction that raised it, for a software interrupt or exception.
    pub instruction_bytes: u32,
}

impl Injection {
    /// The next entry delivers `event`. A guest in real mode (CR0.PE clear) gets no error code.
    pub fn new(event: Event, is_real_mode: bool) -> Self {
        let valid = Interruption::new().with_is_valid(true);
        match event {
            Event::Interrupt(vector) => Self::plain(valid.with_kind(kind::INTERRUPT).with_vector(vector)),
            Event::Nmi => Self::plain(valid.with_kind(kind::NMI).with_vector(vector::NMI)),
            Event::Exception(exception) => {
                let interruption = valid.with_kind(kind::EXCEPTION).with_vector(exception.vector());
                match exception.error_code().filter(|_| !is_real_mode) {
                    Some(error_code) => {
                        Self { interruption: interruption.with_has_error_code(true), error_code, instruction_bytes: 0 }
                    }
                    None => Self::plain(interruption),
                }
            }
        }
    }

    fn plain(interruption: Interruption) -> Self {
        Self { interruption, ..Self::default() }
    }

    /// The event whose delivery an exit has interrupted, to be delivered again.
    pub fn interrupted(vmcs: &impl Vmcs) -> Option<Self> {
        let interruption = Interruption::from_bits(vmcs.read_32(Field32::IdtVectoringInformation));
        if !interruption.is_valid() {
            return None;
        }
        let has_code = interruption.has_error_code();
        let error_code = if has_code { vmcs.read_32(Field32::IdtVectoringErrorCode) } else { 0 };
        let is_software = kind::is_software(interruption.kind());
        let instruction_bytes = if is_software { vmcs.read_32(Field32::ExitInstructionLength) } else { 0 };
        // The other bits are undefined in the description of an exit, and reserved in that of an entry.
        let interruption = interruption.with_has_unblocked_nmi(false).with_reserved(0);
        Some(Self { interruption, error_code, instruction_bytes })
    }

    /// Has the next entry deliver it.
    pub fn write(self, vmcs: &mut impl Vmcs) {
        vmcs.write_32(Field32::EntryInterruptionInformation, self.interruption.into_bits());
        if self.interruption.has_error_code() {
            vmcs.write_32(Field32::EntryExceptionErrorCode, self.error_code);
        }
        if kind::is_software(self.interruption.kind()) {
            vmcs.write_32(Field32::EntryInstructionLength, self.instruction_bytes);
        }
    }
}

/// Returns whether the exit interrupted an IRET that had ended the blocking of NMIs: the guest executes it again, so
/// the blocking is to be set again (section 28.2.3, with virtual NMIs).
pub fn has_unblocked_nmi(vmcs: &impl Vmcs) -> bool {
    let is_delivering = || Interruption::from_bits(vmcs.read_32(Field32::IdtVectoringInformation)).is_valid();
    match vmcs.read_32(Field32::ExitReason) {
        code if code & reason::ENTRY_FAILED != 0 => false,
        code if code as u16 == reason::EXCEPTION_OR_NMI => {
            let exit = Interruption::from_bits(vmcs.read_32(Field32::ExitInterruptionInformation));
            let is_double_fault = exit.kind() == kind::EXCEPTION && exit.vector() == DOUBLE_FAULT;
            exit.is_valid() && exit.has_unblocked_nmi() && !is_double_fault && !is_delivering()
        }
        code if matches!(code as u16, reason::EPT_VIOLATION | reason::PML_FULL) => {
            vmcs.read_natural(FieldNatural::ExitQualification) & 1 << 12 != 0 && !is_delivering()
        }
        _ => false,
    }
}

/// DR6 as the guest's handler of #DB is to find it: `before`, with the causes that the exit reported.
pub const fn dr6(before: u64, causes: u64) -> u64 {
    /// B0 to B3: a new #DB replaces them.
    const BREAKPOINTS: u64 = 0xf;
    /// BD, BS.
    const STICKY: u64 = 1 << 13 | 1 << 14;
    /// BLD and RTM, which are active low in the register.
    const INVERTED: u64 = 1 << 11 | 1 << 16;
    let set = before & !BREAKPOINTS | causes & (BREAKPOINTS | STICKY) | INVERTED;
    set & !(causes & INVERTED)
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
