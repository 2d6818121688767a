// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that the driver sends.

use ::virtio::{Chain, Fault};
use vsock::{HEADER_BYTES, Header, Operation};

use super::device::{TRANSMIT, Vsock};
use crate::devices::virtio::Io;

/// A packet that a driver sends, its data in the [`Chain`] that it was taken with; or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its header.
    pub(super) header: Header,
    /// Bytes of its data that its receiver has.
    pub(super) passed: u32,
}

impl Packet {
    /// A packet of the host's own.
    pub fn of_host(header: Header) -> Self {
        Self { header, passed: 0 }
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of its data that its receiver has.
    pub fn passed(&self) -> u32 {
        self.passed
    }
}

/// The next item that the driver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing.
    Nothing,
    /// Nothing until it has given buffers for RST: then it notifies the device.
    Blocked,
    /// A packet. It is [done](Vsock::done), [held](Vsock::hold) or [refused](Vsock::refuse).
    Packet(Packet),
    /// A packet that goes nowhere. It is done.
    Dropped,
    /// A packet that no driver may send. It is refused.
    Refused(Header),
}

impl Vsock {
    /// Asks the driver not to notify the device of packets: they are taken until there are none.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn begin_sending(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        io.disable_notifications(TRANSMIT)
    }

    /// Shows the driver the packets that are done. With `asks_again` it is to notify the device of the next one; true
    /// if there is one already.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn end_sending(&mut self, asks_again: bool, io: &mut Io<'_>) -> Result<bool, Fault> {
        io.publish(TRANSMIT)?;
        if asks_again { io.enable_notifications(TRANSMIT) } else { Ok(false) }
    }

    /// Takes the next packet that the driver sends, with the memory that it is in.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn take(&mut self, chain: &mut Chain, io: &mut Io<'_>) -> Result<Taken, Fault> {
        if self.refused.is_full() {
            return Ok(Taken::Blocked);
        }
        if self.sending.is_some() || !io.take(TRANSMIT, chain)? {
            return Ok(Taken::Nothing);
        }
        self.sending = Some(chain.head());
        let mut bytes = [0; HEADER_BYTES];
        chain.read(io.memory, 0, &mut bytes)?;
        let data_bytes = chain.readable_bytes().checked_sub(HEADER_BYTES as u32);
        let data_bytes = data_bytes.ok_or(Fault::Request("a packet is shorter than a header"))?;
        // A packet from another source has no end that RST could go to (5.10.6.4.2).
        let header =
            Header::parse(&bytes).filter(|header| header.source.cid == self.cid() && header.bytes <= data_bytes);
        Ok(header.map_or(Taken::Dropped, |header| self.judge(header)))
    }

    fn judge(&mut self, header: Header) -> Taken {
        let is_data = header.operation == Some(Operation::Data);
        let header = Header { bytes: if is_data { header.bytes } else { 0 }, ..header };
        match self.connections.send(&header, self.peers.contains(&header.destination.cid)) {
            Err(vsock::Refused) => Taken::Refused(header),
            Ok(true) if !is_data || header.bytes > 0 => {
                Taken::Packet(Packet { header, passed: self.passed.min(header.bytes) })
            }
            Ok(_) => Taken::Dropped,
        }
    }

    /// The packet that was taken is sent. Unless its driver has reset the device since: then there is nothing to give
    /// back.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn done(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        self.passed = 0;
        match self.sending.take() {
            Some(head) => io.complete(TRANSMIT, head, 0),
            None => Ok(()),
        }
    }

    /// The packet that was taken goes on later: its receiver has no place for the rest.
    pub fn hold(&mut self, packet: &Packet, io: &mut Io<'_>) {
        if self.sending.take().is_some() {
            io.put_back(TRANSMIT);
            self.passed = packet.passed;
        }
    }

    /// The packet that was taken is refused: the driver gets RST for it. The host [resets](Self::reset_end) the other
    /// end, if there is one.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn refuse(&mut self, header: &Header, io: &mut Io<'_>) -> Result<(), Fault> {
        if self.sending.is_some() {
            self.connections.discard(header.source.port, header.destination);
            if header.operation != Some(Operation::Reset) {
                // There is room: else nothing was taken.
                let _ = self.refused.try_push(Header::reset(header.destination, header.source));
            }
        }
        self.done(io)?;
        self.flush(io)
    }
}
