// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages that a chain names: an array of numbers, 32 bits each (section 5.5.6).

use ::virtio::{Chain, Fault};

use crate::devices::virtio::Io;

const NUMBER_BYTES: usize = 4;
/// Numbers that are read at a time.
const PIECE: usize = 64;
/// Pages of a chain that count: Linux names 256 at most.
const PAGES: usize = 1024;

/// Calls `act` for each page that a chain names.
///
/// # Errors
/// The chain is not such an array.
pub(super) fn each(chain: &Chain, io: &Io<'_>, mut act: impl FnMut(u64)) -> Result<(), Fault> {
    let bytes = chain.readable_bytes() as usize;
    if bytes == 0 || !bytes.is_multiple_of(NUMBER_BYTES) || chain.writable_bytes() > 0 {
        return Err(Fault::Request("a list of pages is empty, cut off, or one to be written"));
    }
    let most = bytes.min(PAGES * NUMBER_BYTES);
    for at in (0..most).step_by(PIECE * NUMBER_BYTES) {
        let mut piece = [0; PIECE * NUMBER_BYTES];
        let read = chain.read(io.memory, at as u32, &mut piece[..(most - at).min(PIECE * NUMBER_BYTES)])?;
        let numbers = piece[..read].as_chunks::<NUMBER_BYTES>().0;
        numbers.iter().for_each(|number| act(u32::from_le_bytes(*number).into()));
    }
    Ok(())
}
