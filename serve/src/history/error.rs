// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of the history.

use std::io::ErrorKind;

use redb::Error;
use thiserror::Error;

/// The reason why nothing can be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HistoryError {
    /// The file's content differs from what was written.
    #[error("the history {place} is damaged: {reason}")]
    Damaged {
        /// The file.
        place: String,
        /// The damage.
        reason: String,
    },
    /// Another process has the file open.
    #[error("the history {place} is in use by another service; give each service a file of its own")]
    InUse {
        /// The file.
        place: String,
    },
    /// The file cannot grow.
    #[error("there is no space left for the history {place}: {reason}; free space there, or lower --history-size")]
    Full {
        /// The file.
        place: String,
        /// The system's reason.
        reason: String,
    },
    /// Anything else.
    #[error("the history {place} cannot be used: {reason}")]
    Failed {
        /// The file.
        place: String,
        /// The reason.
        reason: String,
    },
}

impl HistoryError {
    /// Names a failure of the database at this place.
    pub(super) fn new(place: &str, error: impl Into<Error>) -> Self {
        let (error, place) = (error.into(), place.to_owned());
        let reason = error.to_string();
        match error {
            Error::Corrupted(_) | Error::RepairAborted | Error::UpgradeRequired(_) => Self::Damaged { place, reason },
            Error::TableTypeMismatch { .. } | Error::TableIsMultimap(_) | Error::TypeDefinitionChanged { .. } => {
                Self::Damaged { place, reason }
            }
            Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => Self::InUse { place },
            Error::Io(error) => match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                    Self::Full { place, reason }
                }
                ErrorKind::InvalidData | ErrorKind::UnexpectedEof => Self::Damaged { place, reason },
                _ => Self::Failed { place, reason },
            },
            _ => Self::Failed { place, reason },
        }
    }
}
