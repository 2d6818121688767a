// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image in its slot that is not yet trusted: hashed in slices while guests run, and judged. The file is hashed as
//! it was placed, so that the hashed image is the one that will run.

use alloc::boxed::Box;

use ::update::stage::{self, Policy};
use handover::Image;
use handover::image::{REMAPPED_SINCE, RESETS_SINCE, Reader};
use seal::{Check, Origin, PublicKey, Seal, Verify};
use units::PhysRange;

use super::error::StageError;
use super::trust;
use crate::arch::lock::LockedFrames;
use crate::arch::memory::OwnedFrames;
use crate::arch::sha256::Engine;
use crate::arch::{boot, cpu, timer};

/// Bytes that are hashed at a time: some tens of microseconds' worth by plain code, for which guests on this CPU
/// wait.
const SLICE_BYTES: u64 = 2 * 1024;

/// An image that is being checked.
pub struct StagedImage {
    image: Image,
    slot: Slot,
    policy: Verify,
    check: Check<Engine>,
    ticks: u64,
}

/// An image that may run, as far as the policy wants to know.
pub struct Trusted {
    /// Its file's description.
    pub image: Image,
    /// Its slot.
    pub slot: Slot,
    /// The policy for its check.
    pub policy: Verify,
    /// The bytes and time of hashing so far.
    pub hashed: Hashed,
    /// The key that has signed it; `None` where it is not signed or not checked.
    pub signer: Option<PublicKey>,
}

/// The bytes and time that a check took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed {
    /// Bytes.
    pub bytes: u64,
    /// Ticks, waiting not counted.
    pub ticks: u64,
}

/// The slot of an image.
pub enum Slot {
    /// In frames that can be written.
    Open(OwnedFrames),
    /// In frames that cannot.
    Locked(LockedFrames),
}

impl Slot {
    /// Returns where it is.
    pub fn range(&self) -> PhysRange {
        match self {
            Self::Open(frames) => frames.range(),
            Self::Locked(frames) => frames.range(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Open(frames) => frames.bytes(),
            Self::Locked(frames) => frames.bytes(),
        }
    }
}

impl StagedImage {
    /// An image in its slot; so many bytes of its file are to be hashed.
    pub fn new(image: Image, slot: Slot, policy: Verify, sealed_bytes: u64) -> Box<Self> {
        Box::new(Self { image, slot, policy, check: Check::new(Engine::best(), sealed_bytes), ticks: 0 })
    }

    /// Returns whether it goes on with IOMMUs as this image leaves them, interrupts included.
    pub fn knows_iommus(&self) -> bool {
        self.image.iommu_version() >= REMAPPED_SINCE
    }

    /// Returns whether it carries out the resets that guests ask for.
    pub fn knows_resets(&self) -> bool {
        self.image.iommu_version() >= RESETS_SINCE
    }

    /// The reader that it is of a record in the newest version.
    pub fn reader(&self) -> Reader {
        self.image.reader(self.image.version_to_write(boot::newest_version()).unwrap_or_default())
    }

    /// Returns what is done with it before it is trusted.
    pub fn policy(&self) -> Policy {
        demands(self.policy)
    }

    /// Hashes a slice; returns whether nothing is left to hash.
    pub fn step(&mut self, file: &[u8]) -> bool {
        stage::hash(self.policy(), || {
            let began = cpu::tsc();
            let is_over = self.check.step(SLICE_BYTES, |at| self.image.placed(file, self.slot.bytes(), at));
            self.ticks += cpu::tsc().wrapping_sub(began);
            is_over
        })
    }

    /// Returns whether it may run. Everything has been hashed.
    pub fn judge(self: Box<Self>, file: &[u8]) -> Result<Box<Trusted>, StageError> {
        let Self { image, slot, policy, check, ticks } = *self;
        let hashed = Hashed { bytes: check.bytes(), ticks };
        let origin = judge(check, file)?;
        let signer = log_judged(&image, origin, hashed);
        Ok(Box::new(Trusted { image, slot, policy, hashed, signer }))
    }

    /// Takes it as it is, which the host's option asks for.
    pub fn trust_unchecked(self: Box<Self>) -> Box<Trusted> {
        let Self { image, slot, policy, .. } = *self;
        log::warn!("option verify=none: image {} is not checked", image.note().version());
        Box::new(Trusted { image, slot, policy, hashed: Hashed::default(), signer: None })
    }
}

/// Returns the checks that a policy of the host's demands.
pub fn demands(policy: Verify) -> Policy {
    Policy { is_checked: policy.checks_when_staged(), is_locked: policy.locks() }
}

impl Trusted {
    /// Checks it once more, by its digest alone: no guest runs. Allocates nothing.
    pub fn check_in_blackout(&self, file: &[u8]) -> Result<Hashed, StageError> {
        let began = cpu::tsc();
        let (sealed, seal) = Seal::split(file).map_err(StageError::Seal)?;
        let mut check = Check::new(Engine::best(), sealed.len() as u64);
        while !check.step(u64::MAX, |at| self.image.placed(file, self.slot.bytes(), at)) {}
        let bytes = check.bytes();
        seal.compare(&check.digest()).map_err(StageError::Seal)?;
        Ok(Hashed { bytes, ticks: cpu::tsc().wrapping_sub(began) })
    }
}

fn judge(check: Check<Engine>, file: &[u8]) -> Result<Origin, StageError> {
    let (_, seal) = Seal::split(file).map_err(StageError::Seal)?;
    seal.judge(&check.digest(), trust::trust()).map_err(StageError::Seal)
}

/// Logs the result of the check; returns the signer.
fn log_judged(image: &Image, origin: Origin, hashed: Hashed) -> Option<PublicKey> {
    let (version, build) = (image.note().version(), image.build());
    let (us, means) = (timer::ticks_to_ns(hashed.ticks) / 1000, Engine::best().means());
    let whole = format_args!("image {version} {build}: whole ({us} us, by {means})");
    match origin {
        Origin::Signed(key) => {
            log::info!("{whole}, signed by {}", key.id());
            Some(key)
        }
        Origin::Unsigned => {
            log::info!("{whole}, not signed; no key is configured");
            None
        }
    }
}
