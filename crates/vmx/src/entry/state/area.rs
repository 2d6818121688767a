// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of a part of the state: names, and the fields of the VMCS behind them.

macro_rules! area {
    ($(#[$about:meta])* pub struct $name:ident { $($field:ident: $width:ident $vmcs:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are the manual's")]
        pub struct $name {
            $(pub $field: <crate::field::$width as crate::field::Access>::Value,)*
        }

        impl $name {
            /// Reads the fields that exist on a CPU with `allowed` controls; the others are zero.
            pub fn load(vmcs: &impl crate::field::Vmcs, allowed: crate::control::Controls) -> Self {
                use crate::field::{Access, Field};
                let mut area = Self::default();
                $(if crate::field::$width::$vmcs.exists(allowed) {
                    area.$field = crate::field::$width::$vmcs.read(vmcs);
                })*
                area
            }

            /// Writes the fields that exist on a CPU with `allowed` controls.
            pub fn store(&self, vmcs: &mut impl crate::field::Vmcs, allowed: crate::control::Controls) {
                use crate::field::{Access, Field};
                $(if crate::field::$width::$vmcs.exists(allowed) {
                    crate::field::$width::$vmcs.write(vmcs, self.$field);
                })*
            }
        }
    };
}
