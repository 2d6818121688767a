// SPDX-License-Identifier: MIT OR Apache-2.0
//! An entity's share of the CPU.

use core::fmt;
use core::num::NonZeroU16;

/// Weight of an entity: twice the weight, twice the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(NonZeroU16);

impl Weight {
    /// The smallest weight.
    pub const LEAST: Self = Self(NonZeroU16::MIN);
    /// The largest weight.
    pub const MOST: Self = Self(NonZeroU16::new(1024).unwrap());
    /// The weight of an entity for which none is asked.
    pub const DEFAULT: Self = Self(NonZeroU16::new(100).unwrap());

    /// A weight between [`Weight::LEAST`] and [`Weight::MOST`].
    pub const fn new(weight: u32) -> Result<Self, WeightError> {
        match NonZeroU16::new(weight as u16) {
            Some(number) if weight <= Self::MOST.get() as u32 => Ok(Self(number)),
            _ => Err(WeightError { weight }),
        }
    }

    /// The weight as a number.
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A weight that is too small or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightError {
    /// The weight that was asked for.
    pub weight: u32,
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most, usual) = (Weight::LEAST, Weight::MOST, Weight::DEFAULT);
        write!(
            f,
            "weight {} is out of range: choose {} to {} ({} is usual)",
            self.weight,
            least.get(),
            most.get(),
            usual.get()
        )
    }
}

impl core::error::Error for WeightError {}
