// SPDX-License-Identifier: MIT OR Apache-2.0
//! CR4, which guests write without an exit: why each bit may be set, although CPUID hides some of the features (AMD APM
//! vol. 2, section 3.1.3; Intel SDM vol. 3, section 2.5).
//!
//! A CPU raises #GP for a bit whose feature it does not have, so what a guest can set is what the host's
//! CPU has. An intercept of each write would cost more than what it would hide is worth: nothing that a guest can
//! reach by a hidden bit leaves its own state.

use crate::cpu::cpuid::features::{Feature, LEAF_1_ECX, LEAF_1_EDX, LEAF_7_0, Show};

/// The reason why a guest may set a bit of CR4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Every 64-bit CPU has it.
    Architecture,
    /// CPUID shows the feature where the host has it.
    Shown(&'static str),
    /// CPUID hides the feature; it changes only the guest's own state, for this reason.
    Harmless(&'static str),
    /// The feature is of another maker's or of no CPU that SVM is for: setting the bit is #GP.
    Reserved(&'static str),
}

use Reason::{Architecture, Harmless, Reserved, Shown};

/// The bits that have a name. All others are reserved on every CPU.
pub const BITS: &[(u32, &str, Reason)] = &[
    (0, "VME", Shown("VME")),
    (1, "PVI", Shown("VME")),
    (2, "TSD", Architecture),
    (3, "DE", Shown("DE")),
    (4, "PSE", Shown("PSE")),
    (5, "PAE", Shown("PAE")),
    (6, "MCE", Shown("MCE")),
    (7, "PGE", Shown("PGE")),
    (8, "PCE", Architecture),
    (9, "OSFXSR", Shown("FXSR")),
    (10, "OSXMMEXCPT", Shown("SSE")),
    (11, "UMIP", Shown("UMIP")),
    (
        12,
        "LA57",
        Harmless("its page tables have a fifth level, which walks here know; CR3 and CR4 are in the control block"),
    ),
    (13, "VMXE", Reserved("Intel's VMX")),
    (14, "SMXE", Reserved("Intel's SMX")),
    (16, "FSGSBASE", Shown("FSGSBASE")),
    (17, "PCIDE", Shown("PCID")),
    (18, "OSXSAVE", Shown("XSAVE")),
    (19, "KL", Reserved("Intel's key locker")),
    (20, "SMEP", Shown("SMEP")),
    (21, "SMAP", Shown("SMAP")),
    (
        22,
        "PKE",
        Harmless("PKRU is a component of XSAVE's area, which is saved and loaded whole whatever XCR0 the guest has"),
    ),
    (
        23,
        "CET",
        Harmless("S_CET, U_CET and the shadow stacks' pointers are MSRs that are #GP, and zero: nothing is enabled"),
    ),
    (24, "PKS", Harmless("PKRS is an MSR that is #GP, and zero: every access is allowed")),
    (25, "UINTR", Reserved("Intel's user interrupts")),
    (27, "LASS", Reserved("Intel's linear address space separation")),
    (28, "LAM_SUP", Reserved("Intel's linear address masking")),
    (32, "FRED", Reserved("Intel's flexible return and event delivery")),
];

/// Returns the condition on which CPUID shows a feature, by its name in the tables.
pub fn shown(feature: &str) -> Option<Show> {
    let tables: [&[Feature]; 5] = [LEAF_1_ECX, LEAF_1_EDX, LEAF_7_0[1], LEAF_7_0[2], LEAF_7_0[3]];
    let mut all = tables.into_iter().flatten();
    all.find(|(_, name, _)| *name == feature).map(|&(_, _, show)| show)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(bit: u32) -> Option<(&'static str, Reason)> {
        let mut named = BITS.iter().filter(|(number, ..)| *number == bit);
        let found = named.next().map(|&(_, name, reason)| (name, reason));
        assert!(named.next().is_none(), "bit {bit} is there twice");
        found
    }

    /// Returns CPUID's name of the feature of a bit that it hides.
    fn hidden_feature(bit: &str) -> &str {
        match bit {
            "VMXE" => "VMX",
            "SMXE" => "SMX",
            "PKE" => "PKU",
            "CET" => "CET_SS",
            other => other,
        }
    }

    #[test]
    fn every_bit_of_cr4_is_shown_by_cpuid_or_proven_harmless_or_reserved() {
        for bit in 0..64 {
            match reason(bit) {
                None | Some((_, Architecture)) => {}
                Some((name, Shown(feature))) => assert_eq!(shown(feature), Some(Show::AsHost), "{name}"),
                Some((name, Harmless(why) | Reserved(why))) => {
                    let show = shown(hidden_feature(name));
                    let is_elsewhere = matches!(name, "LASS" | "LAM_SUP" | "FRED");
                    assert!(show == Some(Show::Never) || is_elsewhere && show.is_none(), "{name} is shown");
                    assert!(!why.is_empty());
                }
            }
        }
    }

    #[test]
    fn the_registers_behind_hidden_bits_cannot_be_reached() {
        use crate::cpu::msr::{MsrClass, classify};
        // U_CET, S_CET, PL0_SSP to PL3_SSP, ISST_ADDR, PKRS, XSS.
        for msr in [0x6a0, 0x6a2, 0x6a4, 0x6a5, 0x6a6, 0x6a7, 0x6a8, 0x6e1, 0xda0] {
            assert_eq!(classify(msr), MsrClass::Absent, "{msr:#x}");
        }
    }
}
