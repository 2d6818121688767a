// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that a guest finds: its memory layout, the ACPI and SMBIOS tables, and its kernel's load into memory.

pub mod acpi;
pub mod layout;
pub mod loader;
pub mod reset_vector;
pub mod smbios;
