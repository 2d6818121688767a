// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of an enum of fields: name, encoding, and the controls that it belongs to.

use crate::control::{Control, Controls};

/// A field of the VMCS.
pub trait Field: Copy + Sized + 'static {
    /// All fields of this width, in the order of their encodings.
    const ALL: &'static [Self];

    /// The operand of VMREAD and VMWRITE that names it, for access to the whole field.
    fn encoding(self) -> u32;

    /// The controls to which it belongs: the field exists on a CPU that allows one of them to be 1. Without any it
    /// exists on every CPU.
    fn controls(self) -> &'static [Control];

    /// Returns whether it exists on a CPU that allows the controls in `allowed`.
    fn exists(self, allowed: Controls) -> bool {
        let controls = self.controls();
        controls.is_empty() || controls.iter().any(|control| allowed.has(*control))
    }
}

macro_rules! fields {
    ($(#[$about:meta])* pub enum $name:ident {
        $($field:ident = $encoding:literal $([$($control:ident)*])?,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        #[allow(missing_docs, reason = "the names are the manual's")]
        pub enum $name {
            $($field = $encoding,)*
        }

        impl crate::field::define::Field for $name {
            const ALL: &'static [Self] = &[$(Self::$field,)*];

            fn encoding(self) -> u32 {
                self as u32
            }

            fn controls(self) -> &'static [crate::control::Control] {
                match self {
                    $(Self::$field => &[$($(crate::control::Control::$control,)*)?],)*
                }
            }
        }
    };
}
