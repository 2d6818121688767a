// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a restart and an update have in common: a file that is sent to the host first, and a host that is asked until
//! it is free.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use bundle::Bundle;
use indicatif::{ProgressBar, ProgressStyle};
use wire::{Refusal, RefusalCode, ReplyBody, RequestBody, UploadKind};

use crate::args::Format;
use crate::client::Client;
use crate::config::Config;
use crate::image;
use crate::paths::default_image;
use crate::size::Size;

/// How long it may take until the new image answers: a restart zeroes guests' memory first; in an update it has a
/// processor for half the time at most while it prepares itself.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A host that is busy for a moment is asked again so often, after so long.
const TRIES: u32 = 20;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A file for the host.
pub(super) struct Shipment {
    kind: UploadKind,
    file: Vec<u8>,
    /// What people call it.
    name: String,
}

impl Shipment {
    fn new(kind: UploadKind, file: Vec<u8>, path: &Path) -> Self {
        Self { kind, file, name: path.display().to_string() }
    }

    /// The bundle, or else the image, if one is named.
    pub(super) fn read(bundle: Option<&Path>, image: Option<&Path>) -> Result<Option<Self>> {
        Ok(match (bundle, image) {
            (Some(path), _) => Some(Self::new(UploadKind::Bundle, read_bundle(path)?, path)),
            (None, Some(path)) => Some(Self::new(UploadKind::Image, image::sealed(image::read(path)?), path)),
            (None, None) => None,
        })
    }

    /// Sends the file while guests run, and shows how far it is. One that the host would refuse is not sent.
    pub(super) fn send(&self, client: &mut Client, is_downgrade: bool, format: Format) -> Result<()> {
        let Self { kind, file, name } = self;
        let host = client.info()?;
        let checked = match kind {
            UploadKind::Image => image::check_for(file, &host, is_downgrade),
            UploadKind::Bundle => crate::bundle::check_for(file, &host, is_downgrade),
        };
        checked.with_context(|| format!("{name} is not sent"))?;
        let began = Instant::now();
        let bar = ProgressBar::new(file.len() as u64).with_style(ProgressStyle::with_template(
            "sending {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        )?);
        let sent = client.upload(*kind, file, |there| bar.set_position(there));
        bar.finish_and_clear();
        sent?;
        let (seconds, size) = (began.elapsed().as_secs_f64(), Size { bytes: file.len() as u64 });
        if !format.json {
            let rate = Size { bytes: (file.len() as f64 / seconds.max(1e-3)) as u64 };
            println!("sent {size} in {seconds:.1} s ({rate} a second)");
        }
        Ok(())
    }
}

/// A bundle, or what is built from a host.toml.
fn read_bundle(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return crate::bundle::build(&Config::load(path)?, default_image(None).ok().as_deref());
    }
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Bundle::parse(&bytes).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Asks the host to go to another image, again while it is busy for a moment. A file that was sent and refused is
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

/// Tells the host that an older image is wanted, if one is.
pub(super) fn permit_downgrade(client: &mut Client, is_downgrade: bool) -> Result<()> {
    if is_downgrade { client.order(RequestBody::PermitDowngrade) } else { Ok(()) }
}

/// A version with the build that it is, where that is known.
pub(super) fn with_build(version: &str, build: &str) -> String {
    if build.is_empty() { version.to_owned() } else { format!("{version} ({build})") }
}
