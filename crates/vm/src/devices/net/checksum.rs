// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Internet checksum (RFC 1071) of a frame whose sender has left it to the device.

use ::virtio::Outside;

use super::offload::Checksum;
use crate::devices::virtio::{Place, Source};

/// The checksum's offset in UDP's header (RFC 768), where zero stands for none.
const UDP_OFFSET: u16 = 6;
/// Bytes that are summed up in one go: an even number.
const PIECE: usize = 256;

/// The checksum of the bytes behind the reader, which is at its start, up to `bytes` bytes further. The field itself
/// holds
/// the sum of the pseudo-header.
///
/// # Errors
/// [`Outside`] if a part is not memory.
pub(super) fn of(
    checksum: Checksum,
    mut reader: Place<'_>,
    bytes: usize,
    source: &dyn Source,
) -> Result<[u8; 2], Outside> {
    let (mut sum, mut left) = (0u64, bytes);
    let mut piece = [0; PIECE];
    while left > 0 {
        let piece = &mut piece[..left.min(PIECE)];
        reader.read(piece, source)?;
        sum += add(piece);
        left -= piece.len();
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let found = !(sum as u16);
    let shown = if found == 0 && checksum.offset == UDP_OFFSET { 0xffff } else { found };
    Ok(shown.to_be_bytes())
}

/// The sum of 16-bit numbers; an odd byte at the end is one's upper half.
fn add(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    pairs.map(u64::from).sum()
}
