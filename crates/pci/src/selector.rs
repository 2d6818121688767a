// SPDX-License-Identifier: MIT OR Apache-2.0
//! An operator's choice of one function.
//!
//! | selector | function |
//! |---|---|
//! | `01:00.0`, `0000:01:00.0` | the one at this address |
//! | `8086:10d3` | the only one with these vendor and device identifiers |
//! | `8086:10ca#2` | the second one of these, counted from 1 by rising address |
//! | `nvme:S5GXNX0T` | the NVMe controller with this serial number, wherever it is plugged in |

use core::fmt;

use arrayvec::ArrayVec;
use nvme::Serial;

use crate::address::hexadecimal;
use crate::{Bdf, Function, Kind};

/// The most bytes of a selector's text: `nvme:` and a serial number of 20 characters.
pub const MAX_SELECTOR_BYTES: usize = 25;

/// Candidates that a [`SelectError`] names; it counts the others.
const MAX_CANDIDATES: usize = 4;
/// The digits of an identifier. With fewer, an address without its function (`01:00`) would be one.
const ID_DIGITS: usize = 4;
/// Selectors by serial number begin so.
const BY_SERIAL: &str = "nvme:";

/// A choice of one function. Prints as it is written, an address with its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// The function at this address.
    Place(Bdf),
    /// A function by its identifiers.
    Model {
        /// Vendor identifier.
        vendor: u16,
        /// Device identifier.
        device: u16,
        /// Its number among those, from 1 on, by rising address; `None`: there is one only.
        number: Option<u16>,
    },
    /// The NVMe controller with this serial number, once it was asked for it.
    Serial(Serial),
}

/// Errors of a selector's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorError {
    /// Neither an address nor vendor and device.
    NoFunction,
    /// The part behind `#` is no number from 1 to 65,535.
    BadNumber,
    /// A number after an address, at which there is one function only.
    NumberedAddress,
    /// The part behind `nvme:` is no serial number.
    BadSerial,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFunction => {
                "names no PCI function; write an address (01:00.0), vendor:device (8086:10d3), or the second of these \
                 (8086:10d3#2)"
            }
            Self::BadNumber => "has a bad number; write #1 for the first, by rising address, up to #65535",
            Self::NumberedAddress => "has a number after an address; remove it, there is one function at an address",
            Self::BadSerial => "has a bad serial number; write 1 to 20 printable characters behind nvme:",
        })
    }
}

impl core::error::Error for SelectorError {}

/// Errors of a choice among a machine's functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// There is no such function.
    Nothing {
        /// The choice.
        selector: Selector,
    },
    /// There are fewer than the number of the choice.
    Fewer {
        /// The choice.
        selector: Selector,
        /// The number of functions with these identifiers.
        count: usize,
    },
    /// There are several.
    Ambiguous {
        /// The choice.
        selector: Selector,
        /// The first ones, by rising address.
        candidates: ArrayVec<Bdf, MAX_CANDIDATES>,
        /// The number of all.
        count: usize,
    },
    /// It is a bridge, or has a header of a type that is not known.
    NoEndpoint {
        /// Its address.
        place: Bdf,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { selector: selector @ Selector::Serial(_) } => {
                write!(f, "no disk has reported the serial number {selector}; the host asks disks without a guest ")?;
                f.write_str("when a guest starts that is configured with one")
            }
            Self::Nothing { selector } => {
                write!(f, "there is no function {selector}; `baton pci` lists those there are")
            }
            Self::Fewer { selector, count } => {
                write!(f, "there is no function {selector}, only {count} of this kind; write a number up to #{count}")
            }
            Self::Ambiguous { selector, candidates, count } => {
                write!(f, "there are {count} functions {selector} (")?;
                for (index, place) in candidates.iter().enumerate() {
                    write!(f, "{}{place}", if index == 0 { "" } else { ", " })?;
                }
                let rest = if *count > candidates.len() { ", …" } else { "" };
                match selector {
                    Selector::Serial(_) => write!(f, "{rest}); write an address"),
                    _ => write!(f, "{rest}); write {selector}#1 for the first, or an address"),
                }
            }
            Self::NoEndpoint { place } => {
                write!(f, "{place} is a bridge, which no guest can have; choose a function behind it")
            }
        }
    }
}

impl core::error::Error for SelectError {}

impl Selector {
    /// Reads a selector's text.
    ///
    /// # Errors
    /// [`SelectorError`]: reason and hint, to be read after the text.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if let Some(serial) = text.strip_prefix(BY_SERIAL) {
            return Serial::new(serial).map(Self::Serial).ok_or(SelectorError::BadSerial);
        }
        let (name, number) = text.split_once('#').map_or((text, None), |(name, number)| (name, Some(number)));
        if let Ok(place) = name.parse() {
            return number.map_or(Ok(Self::Place(place)), |_| Err(SelectorError::NumberedAddress));
        }
        let id = |text: &str| hexadecimal(text).filter(|_| text.len() == ID_DIGITS);
        let ids = name.split_once(':').and_then(|(vendor, device)| Some((id(vendor)?, id(device)?)));
        let (vendor, device) = ids.ok_or(SelectorError::NoFunction)?;
        let number = number.map(|text| decimal(text).ok_or(SelectorError::BadNumber)).transpose()?;
        Ok(Self::Model { vendor, device, number })
    }

    /// Returns the function that is meant, of a machine's.
    ///
    /// # Errors
    /// [`SelectError`]: none is meant, several are, or it is a bridge.
    pub fn select<'a>(&self, functions: &'a [Function]) -> Result<&'a Function, SelectError> {
        let selector = *self;
        let named = functions.iter().filter(|function| selector.names(function));
        let endpoints = || named.clone().filter(|function| matches!(function.kind, Kind::Endpoint { .. }));
        let count = endpoints().count();
        let wanted = match (selector, count) {
            (_, 0) => {
                let bridge = named.clone().next().map(|function| SelectError::NoEndpoint { place: function.place });
                return Err(bridge.unwrap_or(SelectError::Nothing { selector }));
            }
            (Self::Model { number: Some(number), .. }, _) => usize::from(number),
            (Self::Place(_), _) | (_, 1) => 1,
            _ => {
                let first = (1..=MAX_CANDIDATES).filter_map(|number| nth(endpoints(), number));
                let candidates = first.map(|function| function.place).collect();
                return Err(SelectError::Ambiguous { selector, candidates, count });
            }
        };
        nth(endpoints(), wanted).ok_or(SelectError::Fewer { selector, count })
    }

    fn names(self, function: &Function) -> bool {
        match self {
            Self::Place(place) => place == function.place,
            Self::Model { vendor, device, .. } => {
                (vendor, device) == (function.identity.vendor, function.identity.device)
            }
            Self::Serial(serial) => function.serial == Some(serial),
        }
    }
}

/// Returns the function with `number - 1` others below its address. They are in the order in which buses were found,
/// which is another where bridges lead downwards.
fn nth<'a>(functions: impl Iterator<Item = &'a Function> + Clone, number: usize) -> Option<&'a Function> {
    let is_it = |function: &&Function| {
        let below = functions.clone().filter(|other| other.place < function.place);
        below.count() + 1 == number
    };
    functions.clone().find(is_it)
}

/// Parses a number from 1 on without sign.
fn decimal(text: &str) -> Option<u16> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| is_digits && number > 0)
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(place) => write!(f, "{place}"),
            Self::Model { vendor, device, number } => {
                write!(f, "{vendor:04x}:{device:04x}")?;
                number.map_or(Ok(()), |number| write!(f, "#{number}"))
            }
            Self::Serial(serial) => write!(f, "{BY_SERIAL}{serial}"),
        }
    }
}

#[cfg(test)]
#[path = "selector_tests.rs"]
mod tests;
