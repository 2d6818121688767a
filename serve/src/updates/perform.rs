// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work of an update: its file is sent, the host switches, and the result is known.

use anyhow::{Result, bail};
use baton::client::{Client, Unclear};
use baton::commands::shipment;
use baton::program::Kind;
use baton::{bundle, image};
use thiserror::Error;
use wire::{ReplyBody, RequestBody, UpdateBy, UpdateReport, UploadKind};

use super::{By, How, Step};

/// The host would refuse the file.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NotSent(String);

/// The end of an update.
pub struct End {
    /// The last step.
    pub step: Step,
    /// The reason, or a fact that the host did not report itself.
    pub message: Option<String>,
    /// The host's report.
    pub report: Option<UpdateReport>,
}

impl End {
    /// Returns the end of an update with this result.
    pub fn of(result: Result<(Option<UpdateReport>, Option<String>)>) -> Self {
        match result {
            Ok((report, message)) => Self { step: Step::Done, message, report },
            Err(error) => {
                let is_refused = Kind::of(&error) == Kind::Refused || error.is::<NotSent>();
                let step = if is_refused { Step::Refused } else { Step::Failed };
                Self { step, message: Some(format!("{error:#}")), report: None }
            }
        }
    }
}

/// Updates the host: sends the file, if there is one, and has the host switch. `progress` gets the step and the bytes
/// that are there.
///
/// # Errors
/// The file is none for this host, the host refuses, or the line is lost.
pub fn perform(
    client: &mut Client,
    file: Vec<u8>,
    how: How,
    mut progress: impl FnMut(Step, u64),
) -> Result<(Option<UpdateReport>, Option<String>)> {
    let host = client.info()?;
    let by = match how.by {
        By::Bundle => UpdateBy::Bundle,
        By::Previous => UpdateBy::Previous,
        By::Image | By::UploadedBundle => UpdateBy::Upload,
    };
    if by == UpdateBy::Upload {
        send(client, file, how.by, how.allow_downgrade, |there| progress(Step::Sending, there))?;
    }
    progress(Step::Switching, 0);
    if how.allow_downgrade {
        client.order(RequestBody::PermitDowngrade)?;
    }
    let body = match how.confirm_within {
        Some(seconds) => RequestBody::UpdateUnlessConfirmed { is_dry_run: how.dry_run, by, seconds },
        None => RequestBody::Update { is_dry_run: how.dry_run, by },
    };
    match shipment::request(client, &body, by == UpdateBy::Upload) {
        Ok(ReplyBody::Updated(report)) => Ok((Some(report), None)),
        Ok(other) => bail!("the host answered something else ({other:?}); use service and host of one release"),
        Err(error) if error.is::<Unclear>() => after_lost_answer(client, host.generation, error),
        Err(error) => Err(error),
    }
}

/// Sends an image or a bundle; one that the host would refuse is not sent.
///
/// # Errors
/// The file is none for this host, or the line is lost.
pub fn send(
    client: &mut Client,
    file: Vec<u8>,
    by: By,
    allow_downgrade: bool,
    progress: impl FnMut(u64),
) -> Result<()> {
    let host = client.info()?;
    let (kind, file) = match by {
        By::UploadedBundle => (UploadKind::Bundle, file),
        _ => (UploadKind::Image, image::sealed(file)),
    };
    let checked = match kind {
        UploadKind::Image => image::check_for(&file, &host, allow_downgrade),
        UploadKind::Bundle => bundle::check_for(&file, &host, allow_downgrade),
        UploadKind::File | UploadKind::Memory => Ok(()),
    };
    checked.map_err(|error| NotSent(format!("the file is not sent: {error:#}")))?;
    client.upload(kind, &file, progress)
}

/// Returns the result of an order with a lost answer: the host's generation shows whether it was carried out.
fn after_lost_answer(
    client: &mut Client,
    before: u64,
    error: anyhow::Error,
) -> Result<(Option<UpdateReport>, Option<String>)> {
    let generation = client.info()?.generation;
    if generation == before {
        return Err(error.context(format!("the host still runs generation {before}")));
    }
    Ok((None, Some(format!("the answer was lost, but the host runs generation {generation} now"))))
}
