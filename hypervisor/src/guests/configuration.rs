// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's configuration: the bundle that it was started with, and what has changed since. A guest holds its own
//! part ([`Guest::config_now`]); here is the rest, files that were sent included.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use bundle::{Bundle, FileRecord, GuestConfig, GuestFiles, HostConfig, Manifest, crc32};
use seal::PublicKey;
use spin::{Mutex, Once};

use crate::arch::memory::OwnedFrames;
use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;

static BUNDLE: Once<Opened> = Once::new();
/// The configuration of a host without a bundle.
static NO_BUNDLE: HostConfig = HostConfig::EMPTY;
/// Files that were sent. Those that a guest needs are handed over.
static SENT: Mutex<Vec<Arc<SentFile>>> = Mutex::new(Vec::new());
/// Changes of the guests' configurations since this image has begun.
static CHANGES: AtomicU32 = AtomicU32::new(0);

struct Opened {
    bundle: Bundle<'static>,
    /// The signers of the images that may replace this one; none: any image is accepted.
    trusted_keys: Vec<PublicKey>,
}

/// A file that was sent, by the digits of its SHA-256.
pub struct SentFile {
    /// The record of it in a manifest.
    pub record: FileRecord,
    /// Its bytes, and the rest of their last frame.
    pub frames: OwnedFrames,
}

impl SentFile {
    /// Returns its bytes.
    pub fn content(&self) -> &[u8] {
        self.frames.bytes().get(..self.record.bytes as usize).unwrap_or_default()
    }
}

/// The host has this bundle, for as long as the image runs.
pub fn open(bundle: Bundle<'static>) {
    let trusted_keys = bundle.manifest().host.trusted_keys.iter().copied().map(PublicKey::from_bytes).collect();
    BUNDLE.call_once(|| Opened { bundle, trusted_keys });
}

/// The bundle, if there is one.
pub fn bundle() -> Option<&'static Bundle<'static>> {
    BUNDLE.get().map(|opened| &opened.bundle)
}

/// The host's own settings.
pub fn host() -> &'static HostConfig {
    bundle().map_or(&NO_BUNDLE, |bundle| &bundle.manifest().host)
}

/// The keys that the host trusts.
pub fn trusted_keys() -> &'static [PublicKey] {
    BUNDLE.get().map_or(&[], |opened| &opened.trusted_keys)
}

/// How often the configuration has changed since this image has begun; 0: it is the bundle's.
pub fn changes() -> u32 {
    CHANGES.load(Ordering::Acquire)
}

/// The configuration has changed.
pub fn note_change() {
    CHANGES.fetch_add(1, Ordering::AcqRel);
}

/// The configuration as it is now, with every file that it needs or that was sent.
pub fn manifest() -> Manifest {
    let guests = GUESTS.all().map(|guest| guest.config_now()).collect();
    let mut manifest = Manifest { host: host().clone(), guests, files: Vec::new() };
    let bundled = bundle().map_or(&[][..], |bundle| &bundle.manifest().files);
    let needed = bundled.iter().filter(|file| manifest.needs(&file.name)).cloned();
    manifest.files = needed.chain(SENT.lock().iter().map(|file| file.record.clone())).collect();
    manifest
}

/// Returns whether a file of this name was sent.
pub fn was_sent(name: &str) -> bool {
    SENT.lock().iter().any(|file| file.record.name == name)
}

/// The file of this name, if it was sent.
pub fn sent(name: &str) -> Option<Arc<SentFile>> {
    SENT.lock().iter().find(|file| file.record.name == name).cloned()
}

/// Keeps a file that was sent.
pub fn keep(file: SentFile) {
    if !was_sent(&file.record.name) && !is_bundled(&file.record.name) {
        SENT.lock().push(Arc::new(file));
    }
}

/// Returns whether the bundle has a file of this name.
pub fn is_bundled(name: &str) -> bool {
    bundle().is_some_and(|bundle| bundle.file(name).is_ok())
}

/// Removes a file that was sent, and releases its memory.
pub fn remove(name: &str) {
    let mut sent = SENT.lock();
    let removed = sent.iter().position(|file| file.record.name == name).map(|at| sent.swap_remove(at));
    // Its frames are given back with this: not under the lock.
    drop(sent);
    drop(removed);
}

/// The files that the host has, held while they are read.
pub struct Files(Vec<Arc<SentFile>>);

impl Files {
    /// Returns those that it has now.
    pub fn now() -> Self {
        Self(SENT.lock().clone())
    }

    /// The bytes of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let sent = self.0.iter().find(|file| file.record.name == name).map(|file| file.content());
        sent.or_else(|| bundle()?.file(name).ok())
    }

    /// Everything that a guest names, once each checksum is what was stated.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn of<'a>(&'a self, guest: &'a GuestConfig) -> Result<GuestFiles<'a>, String> {
        let module = |name: &'a String| Ok((name.as_str(), self.verified(name)?));
        Ok(GuestFiles {
            kernel: self.verified(&guest.kernel)?,
            initrd: guest.initrd.as_deref().map(|name| self.verified(name)).transpose()?,
            modules: guest.modules.iter().map(module).collect::<Result<_, String>>()?,
        })
    }

    fn verified(&self, name: &str) -> Result<&[u8], String> {
        match self.0.iter().find(|file| file.record.name == name) {
            Some(file) if crc32(file.content()) == file.record.crc32 => Ok(file.content()),
            Some(_) => Err(alloc::format!("file {name}: its bytes are damaged; remove it and send it again")),
            None => {
                let bundle = bundle().ok_or_else(|| alloc::format!("file {name}: the host has none"))?;
                bundle.verify(name).map_err(|error| error.to_string())
            }
        }
    }
}

/// Returns whether a guest has not ended, or is about to start.
pub fn runs(guest: &Guest) -> bool {
    // In this order: an order that is being carried out has changed the status by the time at which it is over.
    guest.has_orders() || !guest.status().state.has_ended()
}
