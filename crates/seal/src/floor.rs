// SPDX-License-Identifier: MIT OR Apache-2.0
//! The oldest image that may replace the running one.
//!
//! Each image states a security version, which a release that closes a hole raises. An old image that was
//! signed stays signed for ever; without this rule, it would reopen its holes. A host therefore refuses every image
//! with a security version lower than its own, unless its policy permits a downgrade and the operator asks for one.

use core::fmt;

/// Lower limit on the next image's security version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The running image's security version.
    pub own: u32,
    /// True if the host's policy permits lower ones where the operator asks for it.
    pub permits_downgrade: bool,
}

/// An image is older than the host admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downgrade {
    /// The image's security version.
    pub image: u32,
    /// The host's demands.
    pub floor: Floor,
}

impl Floor {
    /// Returns the floor of a host with an image of the security version `own`. `allow_downgrade` is the value of
    /// `[trust] allow_downgrade`; where it is not set, a host without keys permits a downgrade, and one with keys does
    /// not.
    pub fn new(own: u32, allow_downgrade: Option<bool>, has_keys: bool) -> Self {
        Self { own, permits_downgrade: allow_downgrade.unwrap_or(!has_keys) }
    }

    /// Checks that an image of this security version may replace the running one; `is_asked`: the operator asks for a
    /// downgrade.
    ///
    /// # Errors
    /// The image is too old.
    pub fn admit(self, image: u32, is_asked: bool) -> Result<(), Downgrade> {
        let is_admitted = image >= self.own || (self.permits_downgrade && is_asked);
        if is_admitted { Ok(()) } else { Err(Downgrade { image, floor: self }) }
    }

    /// Checks that an image of this security version is not refused even where the operator asks for a downgrade.
    ///
    /// # Errors
    /// The image is too old.
    pub fn admit_if_asked(self, image: u32) -> Result<(), Downgrade> {
        self.admit(image, true)
    }
}

impl Downgrade {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        if self.floor.permits_downgrade {
            "give --allow-downgrade if you want its holes back"
        } else {
            "use a newer image; this host permits no downgrade ([trust] allow_downgrade in host.toml)"
        }
    }
}

impl fmt::Display for Downgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its security version is {}, and this host's is {}", self.image, self.floor.own)
    }
}

impl core::error::Error for Downgrade {}
