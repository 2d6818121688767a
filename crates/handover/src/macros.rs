// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declaration of the structures that are handed over: one list of each field, its meaning, its unit, and the version
//! since which it exists. The bytes and their description ([`crate::schema`]) come from the same lines.

/// Structures of plain bytes: `pub field: Type as "unit" since version`, where a field without `since` is as old as its
/// structure.
macro_rules! plain {
    ($($(#[$attribute:meta])* pub struct $name:ident since $since:literal {
        $($(#[$field_attribute:meta])* pub $field:ident: $type:ty as $unit:literal $(since $field_since:literal)?,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
            zerocopy::KnownLayout, zerocopy::Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_attribute])* pub $field: $type,)* }

        impl $crate::described::Described for $name {
            const NAME: &'static str = stringify!($name);
            const SINCE: u32 = $since;
            const FIELDS: &'static [$crate::described::Field] = &[$($crate::described::Field {
                name: stringify!($field),
                type_name: stringify!($type),
                unit: $unit,
                since: $crate::macros::newer($since, &[$($field_since)?]),
                offset: core::mem::offset_of!($name, $field),
                bytes: size_of::<$type>(),
            },)*];
        }

        const _: () = $crate::described::assert_grows_at_its_end(<$name as $crate::described::Described>::FIELDS);
    )*};
}

/// Enumerations whose numbers are handed over: `Variant = number since version`.
macro_rules! numbered {
    ($($(#[$attribute:meta])* pub enum $name:ident since $since:literal {
        $($(#[$variant_attribute:meta])* $variant:ident = $number:literal $(since $variant_since:literal)?,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name { $($(#[$variant_attribute])* $variant = $number,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub(crate) const NUMBERS: $crate::described::Numbers = $crate::described::Numbers {
                name: stringify!($name),
                since: $since,
                all: &[$((stringify!($variant), $number, $crate::macros::newer($since, &[$($variant_since)?]))),*],
            };

            /// The one with this number.
            pub fn from_number(number: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| *one as u32 == number)
            }
        }
    )*};
}

/// Bits of a field: `NAME = bit since version`. `ALL` has every one.
macro_rules! flags {
    ($(#[$attribute:meta])* pub mod $name:ident: $type:ty, since $since:literal {
        $($(#[$flag_attribute:meta])* $flag:ident = $bit:literal $(since $flag_since:literal)?,)*
    }) => {
        $(#[$attribute])*
        pub mod $name {
            $($(#[$flag_attribute])* pub const $flag: $type = 1 << $bit;)*
            /// All that are defined.
            pub const ALL: $type = 0 $(| $flag)*;
            pub(crate) const NUMBERS: $crate::described::Numbers = $crate::described::Numbers {
                name: stringify!($name),
                since: $since,
                all: &[$((stringify!($flag), $flag as u32, $crate::macros::newer($since, &[$($flag_since)?]))),*],
            };
        }
    };
}

/// The version since which a field is there: its own where it has one, else its structure's.
pub(crate) const fn newer(structure: u32, field: &[u32]) -> u32 {
    if field.is_empty() { structure } else { field[0] }
}

pub(crate) use {flags, numbered, plain};
