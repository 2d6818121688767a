// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captured frames as a file of the format pcapng, which Wireshark and tcpdump read. Each guest that has sent one is an
//! interface. Source: PCAP Next Generation Capture File Format, draft-ietf-opsawg-pcapng-03.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use wire::{CapturePage, CapturedFrame};

/// Times are in units of ten to the power of minus this, in seconds.
const NANOSECONDS: u8 = 9;

/// A file that is being written.
pub struct PcapNg<W: Write> {
    writer: PcapNgWriter<W>,
    booted: Duration,
    snap_bytes: u32,
    /// The guests, in the order of their interfaces.
    senders: Vec<String>,
    frames: u64,
}

impl<W: Write> PcapNg<W> {
    /// Begins a file. The host has booted at this time since 1970; its frames have at most so many bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(file: W, booted: Duration, snap_bytes: u32) -> Result<Self> {
        Ok(Self { writer: PcapNgWriter::new(file)?, booted, snap_bytes, senders: Vec::new(), frames: 0 })
    }

    /// Writes the frames of a page, all of which the file's reader then has.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, page: &CapturePage) -> Result<()> {
        page.frames.iter().try_for_each(|frame| self.add_frame(frame))?;
        Ok(self.writer.get_mut().flush()?)
    }

    fn add_frame(&mut self, frame: &CapturedFrame) -> Result<()> {
        let interface_id = self.interface(&frame.sender)?;
        self.writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id,
            timestamp: self.booted + Duration::from_nanos(frame.time_ns),
            original_len: frame.bytes,
            data: Cow::Borrowed(&frame.content),
            options: Vec::new(),
        })?;
        self.frames += 1;
        Ok(())
    }

    /// The number of a guest's interface, which is described before its first frame.
    fn interface(&mut self, sender: &str) -> Result<u32> {
        if let Some(number) = self.senders.iter().position(|known| known == sender) {
            return Ok(number as u32);
        }
        let name = InterfaceDescriptionOption::IfName(Cow::Borrowed(sender));
        let options = vec![name, InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
        let snaplen = self.snap_bytes;
        self.writer.write_pcapng_block(InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen, options })?;
        self.senders.push(sender.to_owned());
        Ok(self.senders.len() as u32 - 1)
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the file as it is now.
    pub fn file(&self) -> &W {
        self.writer.get_ref()
    }

    /// Returns the file.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    fn frame(sender: &str, time_ns: u64, bytes: u32, content: &[u8]) -> CapturedFrame {
        CapturedFrame { time_ns, sender: sender.to_owned(), bytes, content: content.to_vec() }
    }

    #[test]
    fn frames_are_there_by_sender_and_time() {
        let booted = Duration::new(1_790_000_000, 5);
        let mut file = PcapNg::new(Vec::new(), booted, 64).expect("a file");
        let frames = vec![frame("web", 1, 60, &[1; 60]), frame("db", 1 << 40, 1514, &[2; 64])];
        file.add(&CapturePage { seen: 2, lost: 0, frames }).expect("written");
        file.add(&CapturePage { seen: 3, lost: 0, frames: vec![frame("web", 1 << 41, 61, &[3; 61])] })
            .expect("written");
        assert_eq!(file.frames(), 3);
        let bytes = file.into_inner();
        let mut reader = PcapNgReader::new(&bytes[..]).expect("pcapng");
        let (mut names, mut packets) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.expect("whole blocks") {
                Block::InterfaceDescription(interface) => {
                    assert_eq!((interface.linktype, interface.snaplen), (DataLink::ETHERNET, 64));
                    assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                    let name = interface.options.iter().find_map(|option| match option {
                        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                        _ => None,
                    });
                    names.extend(name);
                }
                Block::EnhancedPacket(packet) => {
                    let at = packet.timestamp - booted;
                    packets.push((packet.interface_id, at.as_nanos(), packet.original_len, packet.data.len()));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(names, ["web", "db"]);
        assert_eq!(packets, [(0, 1, 60, 60), (1, 1 << 40, 1514, 64), (0, 1 << 41, 61, 61)]);
    }
}
