// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of a part of the state: names, and the fields of the VMCS behind them.

use crate::control::Controls;
use crate::field::{Access, Vmcs};

/// A field's value; the default if it does not exist on a CPU with `allowed` controls. A call for each field is less
/// code than what it does.
#[inline(never)]
pub(super) fn read<F: Access<Value: Default>>(field: F, vmcs: &impl Vmcs, allowed: Controls) -> F::Value {
    if field.exists(allowed) { field.read(vmcs) } else { F::Value::default() }
}

/// Writes a field, if it exists.
#[inline(never)]
pub(super) fn write<F: Access>(field: F, vmcs: &mut impl Vmcs, allowed: Controls, value: F::Value) {
    if field.exists(allowed) {
        field.write(vmcs, value);
    }
}

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
                Self { $($field: super::area::read(crate::field::$width::$vmcs, vmcs, allowed),)* }
            }

            /// Writes the fields that exist on a CPU with `allowed` controls.
            pub fn store(&self, vmcs: &mut impl crate::field::Vmcs, allowed: crate::control::Controls) {
                $(super::area::write(crate::field::$width::$vmcs, vmcs, allowed, self.$field);)*
            }
        }
    };
}
