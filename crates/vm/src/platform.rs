// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest finds of its machine: where everything is, the ACPI tables, and how its kernel is put into memory.

pub mod acpi;
pub mod layout;
pub mod loader;
pub mod reset_vector;
