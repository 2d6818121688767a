// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why the running image cannot be replaced.

use alloc::string::{String, ToString};
use core::fmt;

use handover::ImageError;
use seal::{Downgrade, SealError};
use wire::{Refusal, RefusalCode};

/// The reason for which there can be no restart.
#[derive(Clone, Debug)]
pub enum StageError {
    /// The host has no bundle.
    NoBundle,
    /// The bundle has no image.
    NoImage,
    /// The image before has left no file.
    NoPrevious,
    /// The bundle is damaged.
    Bundle(String),
    /// The image cannot be used.
    Image(ImageError),
    /// The image is not trusted.
    Seal(SealError),
    /// The bundle is not trusted.
    BundleSeal(SealError),
    /// The image is older than this host admits.
    Downgrade(Downgrade),
    /// The image does not return by itself where no client confirms it.
    KnowsNoDeadline,
    /// The file of the running image is unknown, so the next one could not return to it.
    NoWayBack,
    /// This guest is being loaded.
    Loading(String),
    /// A guest cannot be handed over.
    Guests(String),
    /// This CPU is unresponsive.
    Unresponsive(u32),
    /// There is no memory for it.
    OutOfMemory(&'static str),
}

impl StageError {
    /// For programs.
    fn code(&self) -> RefusalCode {
        match self {
            Self::OutOfMemory(_) => RefusalCode::Exhausted,
            Self::Guests(_) | Self::Loading(_) => RefusalCode::WrongState,
            Self::Unresponsive(_) => RefusalCode::Failed,
            _ => RefusalCode::Invalid,
        }
    }

    /// For the client.
    pub fn refusal(&self) -> Refusal {
        let reason = self.to_string();
        let reason = wire::bounded(&reason, wire::MAX_REASON_BYTES).to_string();
        Refusal { code: self.code(), reason, hint: self.hint().into() }
    }

    /// Returns the remedy.
    fn hint(&self) -> &'static str {
        match self {
            Self::NoBundle => "give the host a bundle",
            Self::NoImage => "build the bundle with an image ([host] image in host.toml)",
            Self::NoPrevious => "send an image: `baton update --image FILE`",
            Self::Bundle(_) => "make the bundle again with `baton bundle`",
            Self::Image(_) => "use an image of this host's release",
            Self::Seal(error) => error.hint(),
            Self::BundleSeal(error) => error.hint_of_bundle(),
            Self::Downgrade(downgrade) => downgrade.hint(),
            Self::KnowsNoDeadline => "update without --confirm-within",
            Self::NoWayBack => "build the bundle with the image that the host runs, or update without --confirm-within",
            Self::Loading(_) => "try again in a moment",
            Self::Guests(_) => "try again in a moment, or stop that guest",
            Self::Unresponsive(_) => "try again in a moment; `baton cpu list` shows the CPUs",
            Self::OutOfMemory(_) => "stop a guest, or give the host more memory",
        }
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBundle => f.write_str("the host has no bundle to restart from"),
            Self::NoImage => f.write_str("the bundle holds no image to restart with"),
            Self::NoPrevious => {
                f.write_str("there is no image to go back to: none was updated from, or it left no file")
            }
            Self::Bundle(problem) => f.write_str(problem),
            Self::Image(error) => write!(f, "the image cannot be used: {error}"),
            Self::Seal(error) => write!(f, "the image is not trusted: {error}"),
            Self::BundleSeal(error) => write!(f, "the bundle is not trusted: {error}"),
            Self::Downgrade(downgrade) => write!(f, "the image is too old: {downgrade}"),
            Self::KnowsNoDeadline => f.write_str("the image would stay even if no client confirms the update"),
            Self::NoWayBack => f.write_str("the file of the running image is unknown: no image could return to it"),
            Self::Loading(guest) => write!(f, "guest '{guest}' is being loaded"),
            Self::Guests(problem) => f.write_str(problem),
            Self::Unresponsive(cpu) => write!(f, "CPU {cpu} is unresponsive"),
            Self::OutOfMemory(what) => write!(f, "no memory in one piece below 4 GiB for {what}"),
        }
    }
}
