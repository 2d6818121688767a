// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a command line.

use core::fmt;

use arrayvec::ArrayVec;

use super::table::{OPTIONS, OptionSpec};

/// Complaints that are kept; further ones are counted.
pub const MAXIMUM_COMPLAINTS: usize = 16;

/// A word of the command line that was ignored.
#[derive(Clone, Copy, Debug)]
pub enum Complaint<'a> {
    /// There is no such option.
    Unknown {
        /// The whole word.
        word: &'a str,
        /// The option that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The option does not take this value.
    Malformed {
        /// The option.
        option: &'static OptionSpec,
        /// The value; `None` if there was no `=`.
        value: Option<&'a str>,
    },
    /// The option asks for self-tests, and the image has no fault points.
    NoFaultPoints {
        /// The whole word.
        word: &'a str,
    },
}

impl fmt::Display for Complaint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unknown { word, nearest: Some(nearest) } => {
                write!(f, "option {word} is unknown and ignored: did you mean {nearest}?")
            }
            Self::Unknown { word, nearest: None } => {
                write!(f, "option {word} is unknown and ignored: there are ")?;
                OPTIONS
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, option)| write!(f, "{}{}", if index == 0 { "" } else { ", " }, option.name))
            }
            Self::Malformed { option: OptionSpec { name, accepted, .. }, value: Some(value) } => {
                write!(f, "option {name}={value} is ignored: {name} takes {accepted}")
            }
            Self::Malformed { option: OptionSpec { name, accepted, .. }, value: None } => {
                write!(f, "option {name} is ignored, it lacks its value: {name}= takes {accepted}")
            }
            Self::NoFaultPoints { word } => {
                write!(
                    f,
                    "option {word} is ignored: this image is built without fault points; boot the test image, \
                     target/baton-faults.elf"
                )
            }
        }
    }
}

/// Everything that is wrong with a command line, in its order.
#[derive(Clone, Debug, Default)]
pub struct Complaints<'a> {
    kept: ArrayVec<Complaint<'a>, MAXIMUM_COMPLAINTS>,
    more: usize,
}

impl<'a> Complaints<'a> {
    pub(super) fn add(&mut self, complaint: Complaint<'a>) {
        if self.kept.try_push(complaint).is_err() {
            self.more += 1;
        }
    }

    /// The first [`MAXIMUM_COMPLAINTS`].
    pub fn kept(&self) -> &[Complaint<'a>] {
        &self.kept
    }

    /// Returns how many more there were.
    pub fn more(&self) -> usize {
        self.more
    }
}
