// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers, compared with the expected ones.

use core::fmt;

use crate::attempt::{Exception, GENERAL_PROTECTION, attempt};

/// An answer that is not as it should be.
pub struct Wrong {
    what: &'static str,
    item: u64,
    got: u64,
}

impl Wrong {
    /// Of the named thing, the item of that number gave that.
    pub const fn new(what: &'static str, item: u64, got: u64) -> Self {
        Self { what, item, got }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:#x} gave {:#x}", self.what, self.item, self.got)
    }
}

/// Right if a value is what it should be.
pub fn expect(what: &'static str, item: u64, got: u64, wanted: u64) -> Result<(), Wrong> {
    if got == wanted { Ok(()) } else { Err(Wrong::new(what, item, got)) }
}

/// Right if it holds; else `got` is reported.
pub fn expect_that(what: &'static str, item: u64, got: u64, holds: bool) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong::new(what, item, got)) }
}

/// Right if the action raises the exception.
pub fn expect_exception<T>(what: &'static str, item: u64, vector: u8, action: impl FnOnce() -> T) -> Result<(), Wrong> {
    match attempt(action) {
        Err(exception) if exception.vector == vector => Ok(()),
        Err(Exception { vector, error }) => Err(Wrong::new(what, item, u64::from(error) << 32 | u64::from(vector))),
        Ok(_) => Err(Wrong::new(what, item, u64::MAX)),
    }
}

/// Right if the action is a general protection fault.
pub fn expect_fault<T>(what: &'static str, item: u64, action: impl FnOnce() -> T) -> Result<(), Wrong> {
    expect_exception(what, item, GENERAL_PROTECTION, action)
}
