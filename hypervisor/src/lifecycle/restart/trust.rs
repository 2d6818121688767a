// SPDX-License-Identifier: MIT OR Apache-2.0
//! The images and bundles that this host takes: keys and policy of the bundle that it runs.

use handover::Image;
use handover::image::SECURITY_VERSION;
use seal::{Floor, PublicKey, Trust};

use super::error::StageError;
use crate::guests::configuration;

/// The keys that the running bundle trusts.
pub fn keys() -> &'static [PublicKey] {
    configuration::trusted_keys()
}

/// The same, as the seal's check takes them.
pub fn trust() -> Trust<'static> {
    match keys() {
        [] => Trust::Any,
        keys => Trust::Keys(keys),
    }
}

/// Returns what is demanded of the next image's security version.
pub fn floor() -> Floor {
    let allow_downgrade = configuration::host().allow_downgrade;
    Floor::new(SECURITY_VERSION, allow_downgrade, !keys().is_empty())
}

/// Checks an image's note, while the rest of it may still arrive.
pub fn check_early(image: &Image) -> Result<(), StageError> {
    image.check_versions().map_err(StageError::Image)?;
    floor().admit_if_asked(image.security_version()).map_err(StageError::Downgrade)
}
