// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the service, in stages. A task that may wait for long waits for an [`Ending`] as well.

use std::future::{Future, pending};
use std::{io, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::{oneshot, watch};

/// A stage of the service's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It serves.
    Serving,
    /// No client is accepted any more, and no update begun; requests under way go on.
    Closing,
    /// No update is under way any more: streams end.
    Last,
}

/// The service's stage, for tasks that wait for it.
#[derive(Clone, Debug)]
pub struct Ending(watch::Receiver<Stage>);

impl Ending {
    /// Returns the sender of stages, and the value that tasks get; the first stage is [`Stage::Serving`].
    pub fn new() -> (watch::Sender<Stage>, Self) {
        let (sender, receiver) = watch::channel(Stage::Serving);
        (sender, Self(receiver))
    }

    /// Returns whether this stage has come.
    pub fn has_come(&self, stage: Stage) -> bool {
        *self.0.borrow() >= stage
    }

    /// Waits for this stage.
    pub async fn comes(&mut self, stage: Stage) {
        // Without a sender the service ends with its process.
        if self.0.wait_for(|now| *now >= stage).await.is_err() {
            pending().await
        }
    }
}

/// Catches SIGINT and SIGTERM. The future ends with the first of them; the second one ends the process at once, as if
/// it were not caught.
///
/// # Errors
/// The system has no thread left, or lets no signal be caught.
pub fn first_signal() -> io::Result<impl Future<Output = ()>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut signals = signals.forever();
        signals.next();
        let _ = sender.send(());
        if let Some(signal) = signals.next() {
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(async {
        if receiver.await.is_err() {
            pending().await
        }
    })
}
