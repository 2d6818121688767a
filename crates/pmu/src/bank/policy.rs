// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policy for the events of one user, and counts of the work that it takes.

/// Treatment of the bank's events at a change of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// An event for each change.
    Reprogram,
    /// Events are kept and used again.
    #[default]
    Direct,
}

/// No policy is called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl core::str::FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "reprogram" => Ok(Self::Reprogram),
            "direct" => Ok(Self::Direct),
            _ => Err(UnknownPolicy),
        }
    }
}

/// Work done so far, for benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Work {
    /// Events that were given to a counter.
    pub created: u64,
    /// Events that were taken from one.
    pub released: u64,
    /// Times all events were scheduled again.
    pub scheduled: u64,
}
