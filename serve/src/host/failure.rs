// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a host did not answer.

use thiserror::Error;

/// The reason why a host did not answer.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no line to it.
    #[error("{0}")]
    Unreachable(String),
    /// Too much is asked of it, or it takes too long.
    #[error("{0}")]
    Busy(String),
    /// Its own refusal, or a failure of the line.
    #[error(transparent)]
    Host(#[from] anyhow::Error),
}
