// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that the driver receives (sections 5.1.6.3 and 5.1.6.4).

use ::virtio::{Chain, Fault, Outside};
use switch::{HEADER_BYTES, Reason, Tag};

use super::device::Net;
use super::flows::{self, FLOW_BYTES};
use super::frame::Frame;
use super::offload::{self, Checksum, Offload};
use super::sink::{Sink, Stuck};
use super::{checksum, feature, pairs};
use crate::devices::virtio::{Io, Place, Source};

/// Destination and source: the bytes before a tag.
const ADDRESSES_BYTES: usize = HEADER_BYTES - 2;

/// Why a frame was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// It is dropped at this device.
    Dropped(Reason),
    /// Its sender's driver has violated the specification.
    Sender(Fault),
}

/// A frame that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes.
    pub bytes: usize,
    /// The driver has left fewer buffers than a quarter of what the queue holds.
    pub is_short: bool,
}

impl Net {
    /// Receives a frame of another device's, which is in this chain of the `source`'s memory; here it has this tag. It
    /// is received whole or not at all: then the buffers stay the device's.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn receive(
        &mut self,
        frame: &Frame,
        tag: Option<Tag>,
        (chain, source): (&Chain, &dyn Source),
        io: &mut Io<'_>,
    ) -> Result<Result<Received, Undelivered>, Fault> {
        let features = io.features();
        let queue = match self.receive_queue(frame, chain, source) {
            Ok(queue) => queue,
            Err(outside) => return Ok(Err(Undelivered::Sender(outside.into()))),
        };
        if !io.is_enabled(queue) {
            return Ok(Err(Undelivered::Dropped(Reason::Down)));
        }
        if !frame.offload.is_segmented_by(features) {
            return Ok(Err(Undelivered::Dropped(Reason::Offload)));
        }
        let sink = Sink::new((io, queue), &mut self.buffers, features & feature::MRG_RXBUF != 0);
        match sink.fill(|sink| write(frame, tag, (chain, source), features, sink)) {
            Ok(bytes) => Ok(Ok(Received { bytes, is_short: io.is_short(queue)? })),
            Err(Stuck::Full) => Ok(Err(Undelivered::Dropped(Reason::Full))),
            Err(Stuck::Sender(outside)) => Ok(Err(Undelivered::Sender(outside.into()))),
            Err(Stuck::Receiver(fault)) => Err(fault),
        }
    }

    /// Receives a frame of the host's own, which begins with two addresses; here it has this tag. False if it is
    /// dropped.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn receive_own(&mut self, frame: &[u8], tag: Option<Tag>, io: &mut Io<'_>) -> Result<bool, Fault> {
        let (queue, is_mergeable) = (pairs::receive(0), io.features() & feature::MRG_RXBUF != 0);
        if !io.is_enabled(queue) {
            return Ok(false);
        }
        let (addresses, rest) = frame.split_at(frame.len().min(ADDRESSES_BYTES));
        let tag = tag.map(Tag::bytes);
        let tag = tag.as_ref().map_or(&[][..], |tag| &tag[..]);
        let sink = Sink::new((io, queue), &mut self.buffers, is_mergeable);
        let filled = sink.fill(|sink| {
            sink.write_header(&Offload::default().bytes(0))?;
            [addresses, tag, rest].into_iter().try_for_each(|part| sink.write(part))
        });
        match filled {
            Ok(()) => Ok(true),
            Err(Stuck::Receiver(fault)) => Err(fault),
            Err(Stuck::Full | Stuck::Sender(_)) => Ok(false),
        }
    }

    /// The queue whose buffers a frame is received in.
    fn receive_queue(&self, frame: &Frame, chain: &Chain, source: &dyn Source) -> Result<u16, Outside> {
        if self.pairs.used() == 1 {
            return Ok(pairs::receive(0));
        }
        let mut first = [0; FLOW_BYTES];
        let most = frame.bytes.min(FLOW_BYTES);
        Place::at(chain.readable(), offload::BYTES).read(&mut first[..most], source)?;
        let flow = flows::number(&first, frame.behind_tag());
        Ok(pairs::receive(self.flows.pair(flow, self.pairs.used())))
    }
}

/// Writes header and frame; returns the frame's bytes.
fn write(
    frame: &Frame,
    tag: Option<Tag>,
    (chain, source): (&Chain, &dyn Source),
    features: u64,
    sink: &mut Sink<'_, '_>,
) -> Result<usize, Stuck> {
    let behind = frame.behind_tag();
    let tag = tag.map(Tag::bytes);
    let tag = tag.as_ref().map_or(&[][..], |tag| &tag[..]);
    let begin = ADDRESSES_BYTES + tag.len();
    // A driver that takes no partial checksums gets whole ones.
    let (offload, filled) = match frame.offload.checksum {
        Some(checksum) if features & feature::GUEST_CSUM == 0 => (Offload::default(), Some(checksum)),
        _ => (frame.offload, None),
    };
    sink.write_header(&offload.bytes(begin as i32 - behind as i32))?;
    let mut reader = Place::at(chain.readable(), offload::BYTES);
    if tag.is_empty() && behind == ADDRESSES_BYTES && filled.is_none() {
        sink.copy(&mut reader, frame.bytes, source)?;
        return Ok(frame.bytes);
    }
    sink.copy(&mut reader, ADDRESSES_BYTES, source)?;
    sink.write(tag)?;
    reader.pass(behind - ADDRESSES_BYTES);
    match filled {
        None => sink.copy(&mut reader, frame.bytes - behind, source)?,
        Some(checksum) => write_with(checksum, (behind, frame.bytes), (chain, source), &mut reader, sink)?,
    }
    Ok(begin + frame.bytes - behind)
}

/// Copies a frame from a place to its end, with this checksum in it. The sender may change the frame meanwhile: then
/// the checksum is wrong, and the receiver drops the frame.
fn write_with(
    checksum: Checksum,
    (place, frame_bytes): (usize, usize),
    (chain, source): (&Chain, &dyn Source),
    reader: &mut Place<'_>,
    sink: &mut Sink<'_, '_>,
) -> Result<(), Stuck> {
    let start = usize::from(checksum.start);
    let summed = Place::at(chain.readable(), offload::BYTES + start);
    let value = checksum::of(checksum, summed, frame_bytes - start, source).map_err(Stuck::Sender)?;
    let at = checksum.at();
    sink.copy(reader, at.saturating_sub(place), source)?;
    sink.write(&value)?;
    reader.pass(value.len());
    sink.copy(reader, frame_bytes - at - value.len(), source)
}
