// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capabilities and requirements of a CPU's VMX: its capability MSRs (appendix A).

mod registers;

use crate::control::{Control, Controls, Word};
use crate::msr;
use crate::unusable::Unusable;

pub use registers::{Basic, EptVpid, Misc};

/// Settings of one word of controls that the CPU allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The MSR that states it.
    pub msr: u32,
    /// Bits that must be 1.
    pub must: u64,
    /// Bits that may be 1.
    pub may: u64,
}

/// Bits of a control register in VMX operation (appendices A.7 and A.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Bits that must be 1.
    pub must: u64,
    /// Bits that may be 1.
    pub may: u64,
}

impl Fixed {
    /// Returns whether the CPU allows a value, apart from the bits of `exempt`.
    pub const fn allows(self, value: u64, exempt: u64) -> bool {
        self.must & !value & !exempt == 0 && value & !self.may & !exempt == 0
    }
}

/// The capability MSRs of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The VMCS's region and its revision.
    pub basic: Basic,
    /// Timer, activity states, and more.
    pub misc: Misc,
    /// EPT and VPID; zero without them.
    pub ept_vpid: EptVpid,
    /// CR0.
    pub cr0: Fixed,
    /// CR4.
    pub cr4: Fixed,
    words: [Allowed; 6],
}

impl Capabilities {
    /// Reads the MSRs through `read`, only those that exist (appendix A states which).
    ///
    /// # Errors
    /// [`Unusable`] if they contradict each other.
    pub fn read(mut read: impl FnMut(u32) -> u64) -> Result<Self, Unusable> {
        let basic = Basic::from_bits(read(msr::BASIC));
        let mut words = [Allowed::default(); 6];
        for (word, plain, exact) in CONTROL_MSRS {
            let plain = allowed(plain, read(plain))?;
            words[word as usize] = match basic.has_true_controls() {
                true => narrowed(plain, allowed(exact, read(exact))?)?,
                false => plain,
            };
        }
        let primary = words[Word::Primary as usize].may;
        if primary & Control::ActivateSecondaryControls.bit() != 0 {
            words[Word::Secondary as usize] = allowed(msr::PROCBASED_CTLS2, read(msr::PROCBASED_CTLS2))?;
        }
        if primary & Control::ActivateTertiaryControls.bit() != 0 {
            // All 64 bits are 1-settings: there is none that must be 1.
            let may = read(msr::PROCBASED_CTLS3);
            words[Word::Tertiary as usize] = Allowed { msr: msr::PROCBASED_CTLS3, must: 0, may };
        }
        let paging = Control::EnableEpt.bit() | Control::EnableVpid.bit();
        let has_paging = words[Word::Secondary as usize].may & paging != 0;
        let ept_vpid = EptVpid::from_bits(if has_paging { read(msr::EPT_VPID_CAP) } else { 0 });
        let cr0 = fixed(&mut read, msr::CR0_FIXED0, msr::CR0_FIXED1)?;
        let cr4 = fixed(&mut read, msr::CR4_FIXED0, msr::CR4_FIXED1)?;
        Ok(Self { basic, misc: Misc::from_bits(read(msr::MISC)), ept_vpid, cr0, cr4, words })
    }

    /// Checks what EPT of guests needs beside its control.
    ///
    /// # Errors
    /// [`Unusable::Lacks`] names the first feature that the CPU does not have.
    pub fn check_ept(&self) -> Result<(), Unusable> {
        let features = [
            ("EPT page walks of 4 levels", self.ept_vpid.walks_4_levels()),
            ("write-back memory for EPT's structures", self.ept_vpid.write_back()),
            ("EPT pages of 2 MiB", self.ept_vpid.pages_2_mib()),
            ("INVEPT of one context", self.ept_vpid.invept() && self.ept_vpid.invept_single()),
        ];
        match features.into_iter().find(|(_, is_there)| !is_there) {
            Some((feature, _)) => Err(Unusable::Lacks { feature, msr: msr::EPT_VPID_CAP }),
            None => Ok(()),
        }
    }

    /// Settings of a word that the CPU allows.
    pub const fn allowed(&self, word: Word) -> Allowed {
        self.words[word as usize]
    }

    /// Every control that may be 1: by these, fields of the VMCS exist.
    pub fn allowed_controls(&self) -> Controls {
        Word::ALL.iter().fold(Controls::NONE, |all, &word| all.with_word(word, self.allowed(word).may))
    }
}

/// MSRs of each word: of all CPUs, and of those that state the settings of every control (section A.3 to A.5).
const CONTROL_MSRS: [(Word, u32, u32); 4] = [
    (Word::Pin, msr::PINBASED_CTLS, msr::TRUE_PINBASED_CTLS),
    (Word::Primary, msr::PROCBASED_CTLS, msr::TRUE_PROCBASED_CTLS),
    (Word::Exit, msr::EXIT_CTLS, msr::TRUE_EXIT_CTLS),
    (Word::Entry, msr::ENTRY_CTLS, msr::TRUE_ENTRY_CTLS),
];

/// The low half of a control MSR has the bits that must be 1, the high half those that may be.
fn allowed(msr: u32, value: u64) -> Result<Allowed, Unusable> {
    let (must, may) = (value & 0xffff_ffff, value >> 32);
    match must & !may {
        0 => Ok(Allowed { msr, must, may }),
        both => Err(Unusable::Contradiction { msr, other: msr, bit: both.trailing_zeros() }),
    }
}

/// The exact MSR may free bits that the plain one requires. It cannot require or refuse more.
fn narrowed(plain: Allowed, exact: Allowed) -> Result<Allowed, Unusable> {
    match (exact.must & !plain.must) | (plain.may & !exact.may) {
        0 => Ok(exact),
        both => Err(Unusable::Contradiction { msr: plain.msr, other: exact.msr, bit: both.trailing_zeros() }),
    }
}

/// The first MSR of a control register has the bits that must be 1, the second those that may be.
fn fixed(read: &mut impl FnMut(u32) -> u64, must: u32, may: u32) -> Result<Fixed, Unusable> {
    let fixed = Fixed { must: read(must), may: read(may) };
    match fixed.must & !fixed.may {
        0 => Ok(fixed),
        both => Err(Unusable::Contradiction { msr: must, other: may, bit: both.trailing_zeros() }),
    }
}

#[cfg(test)]
#[path = "capability_tests.rs"]
mod tests;
