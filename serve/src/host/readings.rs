// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wait for new readings of a host.
//!
//! One thread reads the host and does clients' orders, one after the other. So each new reading shows the effect of all
//! orders that were answered before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::{Failure, Host, Link, Shared, Snapshot};

/// New readings of a host.
pub struct Readings {
    host: Arc<str>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
}

impl Host {
    /// Returns the readings that come from now on.
    pub fn readings(&self) -> Readings {
        Readings { host: self.name.clone(), snapshots: self.shared.snapshot.subscribe() }
    }

    /// Has the host read as soon as readings have not had more than their share of the line's time. One reading is
    /// enough for any number of calls before it.
    pub fn read_soon(&self) {
        self.shared.is_reading_wanted.store(true, Ordering::SeqCst);
        self.wake();
    }
}

impl Readings {
    /// Waits for the next one.
    ///
    /// # Errors
    /// The line is lost.
    pub async fn next(&mut self) -> Result<Arc<Snapshot>, Failure> {
        let lost = |reason: String| Failure::Unreachable(format!("{}: {reason}", self.host));
        self.snapshots.changed().await.map_err(|_| lost("the service ends".to_owned()))?;
        let snapshot = self.snapshots.borrow_and_update().clone();
        match &snapshot.link {
            Link::Connected => Ok(snapshot),
            link => Err(lost(link.to_string())),
        }
    }
}

impl Shared {
    /// Returns whether a client has asked for a reading since the last call.
    pub(super) fn take_reading_request(&self) -> bool {
        self.is_reading_wanted.swap(false, Ordering::SeqCst)
    }
}
