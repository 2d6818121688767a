// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that one image of Baton hands over to the next.
//!
//! Two images, perhaps of different versions, meet at four places, and all four are described here:
//!
//! | item | written by | read by |
//! |---|---|---|
//! | the image's note ([`image`]) | the build, into the new image | the old image, before anything stops |
//! | the record ([`record`]) | the old image ([`write`]) | the new image, as its first act |
//! | the blocks ([`block`], [`state`]) | the old image's CPUs, each its own | the new image's, each its own |
//! | the switch pages ([`layout::SwitchPages`]) | the old image: pages that outlive it, where CPUs wait | the new image |
//!
//! # The record
//!
//! A [`layout::Header`] with magic number, version, length and CRC-32, then sections: kind, flags, length, payload,
//! padded to eight bytes. All numbers are little endian. Beside it there are [blocks](block): what guests change until
//! the last moment, each written by the CPU that has it. [`schema`] describes all of it.
//!
//! - A reader accepts [`OLDEST_VERSION`] to [`VERSION`], the current one and the one before. A writer writes either:
//!   the newest that the new image's note states it reads. An image that reads neither is refused while guests still
//!   run.
//! - A structure may grow at its end with a version; the fields that are missing are zero, and zero means what was so
//!   before. A field that has been handed over once never moves or changes its meaning within a version.
//! - Sections can be added without a new version as long as a reader may pass over them ([`layout::REQUIRED`] not set).
//!   A reader refuses a required section that it does not know: its content must not be lost.
//!
//! All input is untrusted, although the image before wrote it. Input that fails a check is refused with the reason, and
//! nothing here panics on anything.
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod block;
mod copying;
mod described;
pub mod devices;
mod error;
pub mod image;
mod items;
pub mod layout;
mod macros;
pub mod record;
pub mod schema;
pub mod state;
mod version;
pub mod write;

pub use block::{BlockError, BlockMut, Owner};
pub use copying::copy_changed;
pub use error::{ImageError, RecordError};
pub use image::Image;
pub use items::Items;
pub use layout::Kind;
pub use record::{MAX_RECORD_BYTES, Record};
pub use version::{OLDEST_VERSION, VERSION};
pub use write::{Full, Writer};

#[cfg(test)]
mod tests;
