// SPDX-License-Identifier: MIT OR Apache-2.0
//! The update in the middle of the demo: what `baton update` and `baton timeline` would show of it.

use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow, bail};
use baton::client::Client;
use baton::commands::{shipment, timeline, update};
use baton::running;
use baton::timeline::{bars, host};
use wire::{ReplyBody, RequestBody, UpdateBy, UpdateReport};

/// Attempts at an update: the emulator may keep a CPU away for longer than an update waits.
const ATTEMPTS: u32 = 3;

/// An update under way.
pub(super) struct Replacement {
    thread: JoinHandle<Result<String>>,
}

impl Replacement {
    /// Starts an update of the host of this name to the image in its bundle.
    pub(super) fn begin(host: &str) -> Self {
        let host = host.to_owned();
        Self { thread: thread::spawn(move || replace(&host)) }
    }

    /// Waits for its end; returns the table and the picture.
    pub(super) fn end(self) -> Result<String> {
        let ended = self.thread.join().map_err(|_| anyhow!("the update's thread has failed"))?;
        ended.context("Baton was not updated under the guest")
    }
}

fn replace(host: &str) -> Result<String> {
    let mut client = Client::connect(&running::control_socket_of(host)?)?;
    let report = request(&mut client)?;
    let runs = timeline::host_runs(&mut client)?;
    let blackout = runs.last().and_then(host::blackout_of);
    let picture = blackout.map_or_else(String::new, |blackout| bars::draw(&blackout, timeline::view_of(&blackout)));
    Ok(format!("Baton was updated under the guest:\n{}\n{picture}\n", update::text(&report)))
}

fn request(client: &mut Client) -> Result<UpdateReport> {
    let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    for left in (0..ATTEMPTS).rev() {
        match shipment::request(client, &body, false) {
            Ok(ReplyBody::Updated(report)) => return Ok(report),
            Ok(other) => bail!("the host answered something else ({other:?}); use tool and host of one release"),
            Err(error) if left > 0 && format!("{error:#}").contains("waited too long") => {}
            Err(error) => return Err(error),
        }
    }
    bail!("all {ATTEMPTS} updates were rolled back, since a CPU came too late; run fewer programs beside the demo")
}
