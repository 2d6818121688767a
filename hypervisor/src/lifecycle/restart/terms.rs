// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terms of a restart or an update.

/// The terms on which an image may replace the running one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// The operator asks for an older image, if this is one.
    pub is_downgrade: bool,
    /// The host returns to the image before by itself. That one ran a moment ago, so its security version is no matter.
    pub is_return: bool,
    /// Seconds within which a client is to confirm the update, or the new image returns to this one.
    pub confirm_within_s: Option<u32>,
}
