// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reaction of CPUs to errors that they cannot correct.

/// Way in which uncorrected errors are contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Not at all.
    None,
    /// AMD (CPUID Fn8000_0007_EBX.SUCCOR): damaged data are marked; a context that uses them gets a #MC.
    Poison {
        /// An error that was not recorded is as harmless as the one that was.
        survives_overflow: bool,
    },
    /// Intel (MCG_CAP.MCG_SER_P): the status states the action required.
    Flags,
}
