// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of a restart and an update: a file is sent to the host first, and the request is repeated until
//! the host is free.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use bundle::Bundle;
use indicatif::{ProgressBar, ProgressStyle};
use wire::{HostInfo, Refusal, RefusalCode, ReplyBody, RequestBody, UploadKind};

use crate::args::Format;
use crate::client::{Client, Unclear};
use crate::config::Config;
use crate::image;
use crate::paths::default_image;
use crate::size::Size;

/// The time limit for the new image's answer: a restart zeroes guests' memory first; in an update the new image has a
/// CPU for half the time at most while it prepares itself.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The number of attempts and the interval between them while the host is busy.
const TRIES: u32 = 20;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A file for the host.
pub(super) struct Shipment {
    kind: UploadKind,
    file: Vec<u8>,
    /// Its name in messages.
    name: String,
}

impl Shipment {
    fn new(kind: UploadKind, file: Vec<u8>, path: &Path) -> Self {
        Self { kind, file, name: path.display().to_string() }
    }

    /// Returns the bundle, or else the image, if one is named.
    pub(super) fn read(bundle: Option<&Path>, image: Option<&Path>) -> Result<Option<Self>> {
        Ok(match (bundle, image) {
            (Some(path), _) => Some(Self::new(UploadKind::Bundle, read_bundle(path)?, path)),
            (None, Some(path)) => Some(Self::new(UploadKind::Image, image::sealed(image::read(path)?), path)),
            (None, None) => None,
        })
    }

    /// Sends the file while guests run, and shows its progress. A file that the host would refuse is not sent.
    pub(super) fn send(&self, client: &mut Client, is_downgrade: bool, format: Format) -> Result<()> {
        let Self { kind, file, name } = self;
        let host = client.info()?;
        let checked = match kind {
            UploadKind::Image => image::check_for(file, &host, is_downgrade),
            UploadKind::Bundle => crate::bundle::check_for(file, &host, is_downgrade),
            UploadKind::File | UploadKind::Memory => Ok(()),
        };
        checked.with_context(|| format!("{name} is not sent"))?;
        let began = Instant::now();
        upload(client, *kind, file)?;
        let (seconds, size) = (began.elapsed().as_secs_f64(), Size { bytes: file.len() as u64 });
        if !format.json {
            let rate = Size { bytes: (file.len() as f64 / seconds.max(1e-3)) as u64 };
            println!("sent {size} in {seconds:.3} s ({rate} a second)");
        }
        Ok(())
    }
}

/// Sends a file, and shows its progress.
pub(super) fn upload(client: &mut Client, kind: UploadKind, file: &[u8]) -> Result<()> {
    let bar = ProgressBar::new(file.len() as u64).with_style(ProgressStyle::with_template(
        "sending {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    )?);
    let sent = client.upload(kind, file, |there| bar.set_position(there));
    bar.finish_and_clear();
    sent
}

/// Reads a bundle, or builds one from a host.toml.
fn read_bundle(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return crate::bundle::build(&Config::load(path)?, default_image(None).ok().as_deref());
    }
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Bundle::parse(&bytes).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Asks the host to switch to another image, again while it is busy. A file that was sent and refused is
/// dropped.
pub fn request(client: &mut Client, body: &RequestBody, is_uploaded: bool) -> Result<ReplyBody> {
    for left in (0..TRIES).rev() {
        let error = match client.request_within(TIMEOUT, body.clone()) {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let code = error.downcast_ref::<Refusal>().map(|refusal| refusal.code);
        if left == 0 || code != Some(RefusalCode::WrongState) {
            if is_uploaded && code.is_some() {
                client.order(RequestBody::UploadDrop)?;
            }
            return Err(error);
        }
        thread::sleep(TRY_AGAIN_AFTER);
    }
    bail!("the host is busy; try again later")
}

/// Checks an order to switch that has failed with this error. Where only its answer was lost, the host's generation
/// shows whether it was carried out.
pub(super) fn after_lost_answer(client: &mut Client, before: u64, error: anyhow::Error) -> Result<()> {
    if !error.is::<Unclear>() {
        return Err(error);
    }
    let HostInfo { generation, version, build, .. } = client.info()?;
    if generation == before {
        return Err(error.context(format!("the host still runs generation {before}")));
    }
    let new = with_build(&version, &build);
    eprintln!(
        "the answer was lost, but the host runs generation {generation} ({new}) now; see `baton timeline --last`"
    );
    Ok(())
}

/// Asks the host to permit an older image, if one is wanted.
pub(super) fn permit_downgrade(client: &mut Client, is_downgrade: bool) -> Result<()> {
    if is_downgrade { client.order(RequestBody::PermitDowngrade) } else { Ok(()) }
}

/// Formats the signer of a new image as a row of a report, if its signature was checked.
pub(super) fn signature(signer: Option<&str>) -> String {
    signer.map_or_else(String::new, |signer| format!("signed by    {signer}\n"))
}

/// Formats a version with its build, if that is known.
pub(super) fn with_build(version: &str, build: &str) -> String {
    if build.is_empty() { version.to_owned() } else { format!("{version} ({build})") }
}
