// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that the driver sends (section 5.1.6.2).

use ::virtio::{Chain, Fault};
use switch::{HEADER_BYTES, Header, Reason, TAG_BYTES};

use super::device::Net;
use super::flows::{self, FLOW_BYTES};
use super::offload::{self, Offload};
use super::pairs::transmit;
use crate::devices::virtio::Io;
use crate::memory::GuestMemory;

/// A frame that a driver sends. Its bytes are in the [`Chain`] that it was taken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    ethernet: Header,
    pub(super) offload: Offload,
    pub(super) bytes: usize,
}

impl Frame {
    /// Its Ethernet header.
    pub fn ethernet(&self) -> &Header {
        &self.ethernet
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether it is to be cut into frames of the network's size.
    pub fn is_to_be_segmented(&self) -> bool {
        self.offload.segmentation.is_some()
    }

    /// Reads its first bytes, no more than it [has](Self::bytes).
    ///
    /// # Errors
    /// [`Fault::Outside`] if they are not in memory.
    pub fn read_first(&self, chain: &Chain, memory: &dyn GuestMemory, into: &mut [u8]) -> Result<(), Fault> {
        chain.read(memory, offload::BYTES as u32, into).map(drop)
    }

    /// Where the bytes behind its tag, or behind the place of one, begin: with the EtherType.
    pub(super) fn behind_tag(&self) -> usize {
        HEADER_BYTES - 2 + if self.ethernet.tag.is_some() { TAG_BYTES } else { 0 }
    }
}

/// The next item that the driver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing.
    Nothing,
    /// A frame.
    Frame(Frame),
    /// A frame that cannot be sent, for this reason.
    Dropped(Reason),
}

impl Net {
    /// Takes the next frame that the driver sends by a pair of queues, with the memory that it is in. The one before it
    /// is sent: it is given back.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn take(&mut self, pair: usize, chain: &mut Chain, io: &mut Io<'_>) -> Result<Taken, Fault> {
        self.give_back(pair, io)?;
        if !io.take(transmit(pair), chain)? {
            return Ok(Taken::Nothing);
        }
        if let Some(sending) = self.sending.get_mut(pair) {
            *sending = Some(chain.head());
        }
        let frame = match frame(chain, io)? {
            Ok(frame) => frame,
            Err(reason) => return Ok(Taken::Dropped(reason)),
        };
        if self.pairs.used() > 1 {
            let mut first = [0; FLOW_BYTES];
            frame.read_first(chain, io.memory, &mut first)?;
            self.flows.learn(flows::number(&first, frame.behind_tag()), pair);
        }
        Ok(Taken::Frame(frame))
    }
}

fn frame(chain: &Chain, io: &Io<'_>) -> Result<Result<Frame, Reason>, Fault> {
    let Some(bytes) = (chain.readable_bytes() as usize).checked_sub(offload::BYTES) else {
        return Ok(Err(Reason::Malformed));
    };
    let (mut before, mut first) = ([0; offload::BYTES], [0; HEADER_BYTES + TAG_BYTES]);
    chain.read(io.memory, 0, &mut before)?;
    chain.read(io.memory, offload::BYTES as u32, &mut first)?;
    let ethernet = match Header::parse(&first, bytes) {
        Ok(ethernet) => ethernet,
        Err(reason) => return Ok(Err(reason)),
    };
    let lengths = (bytes - ethernet.payload_bytes, bytes);
    Ok(Offload::parse(&before, io.features(), lengths).map(|offload| Frame { ethernet, offload, bytes }))
}
