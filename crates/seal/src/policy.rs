// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time of an image's check.

use core::fmt;
use core::str::FromStr;

/// Time at which an image that is to replace the running one is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// It is checked when it is staged, and once more in the restart's blackout, because the staged bytes may have been
    /// written to since: the baseline, and the way of kexec's purgatory.
    Sha256,
    /// It is checked when it is staged, once its frames are write-protected; nothing is left to do in the blackout.
    #[default]
    Early,
    /// Never.
    None,
}

impl Verify {
    /// Returns what is done on a host that trusts these keys, or none: keys mean that only what they have signed may
    /// run, so that nothing goes unchecked.
    pub fn on_a_host_with_keys(self, has_keys: bool) -> Self {
        if has_keys && self == Self::None { Self::Early } else { self }
    }

    /// Returns whether an image is checked when it is staged.
    pub fn checks_when_staged(self) -> bool {
        self != Self::None
    }

    /// Returns whether the frames that it lies in are locked before that, until it is entered.
    pub fn locks(self) -> bool {
        self == Self::Early
    }

    /// Returns whether it is checked again while no guest runs.
    pub fn checks_in_blackout(self) -> bool {
        self == Self::Sha256
    }
}

/// There is no such policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl FromStr for Verify {
    type Err = UnknownPolicy;

    fn from_str(word: &str) -> Result<Self, UnknownPolicy> {
        match word {
            "sha256" => Ok(Self::Sha256),
            "early" => Ok(Self::Early),
            "none" => Ok(Self::None),
            _ => Err(UnknownPolicy),
        }
    }
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sha256 => "sha256",
            Self::Early => "early",
            Self::None => "none",
        })
    }
}
