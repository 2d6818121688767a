// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pair of queues by which a frame is received (section 5.1.6.5.5): that by which the driver has sent the last
//! frame of the same flow, so that the vCPU that works with a connection gets its interrupts.

use super::pairs::PAIRS_MOST;
use switch::{HEADER_BYTES, TAG_BYTES};

/// Bytes of a frame that name its flow: Ethernet's header with a tag, the longest IPv4 header, ports.
pub(super) const FLOW_BYTES: usize = HEADER_BYTES + TAG_BYTES + 60 + 4;
const FLOWS: usize = 256;

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Protocols whose headers begin with two ports.
const WITH_PORTS: [u8; 3] = [TCP, UDP, SCTP];
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
/// The bits of an IPv4 header that are set in all fragments but the first, and in none of other packets.
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The pairs of flows. Flows with equal numbers share a pair: that costs time, no frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flows([u8; FLOWS]);

/// No frame of the flow has been sent.
const NONE: u8 = u8::MAX;
const _: () = assert!(PAIRS_MOST < NONE as usize);

impl Flows {
    pub const fn new() -> Self {
        Self([NONE; FLOWS])
    }

    /// The driver has sent a frame of this flow by this pair.
    pub fn learn(&mut self, flow: u8, pair: usize) {
        self.0[usize::from(flow)] = pair as u8;
    }

    /// The pair, of so many, by which a frame of this flow is received.
    pub fn pair(&self, flow: u8, used: usize) -> usize {
        let learned = usize::from(self.0[usize::from(flow)]);
        if learned < used { learned } else { usize::from(flow) % used.max(1) }
    }
}

/// The number of a frame's flow: the same in both directions. `type_at`: where its EtherType is, behind a tag.
pub(super) fn number(first: &[u8; FLOW_BYTES], type_at: usize) -> u8 {
    let packet = first.get(type_at + 2..).unwrap_or_default();
    let word = |at: usize| {
        packet.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes: &[u8; 4]| u32::from_be_bytes(*bytes))
    };
    let byte = |at: usize| packet.get(at).copied().unwrap_or(0);
    let (protocol, ports_at, addresses) = match first.get(type_at..type_at + 2) {
        Some(kind) if kind == IPV4 => {
            let is_later_fragment = word(4) as u16 & FRAGMENT_OFFSET != 0;
            let ports_at = (!is_later_fragment).then_some(usize::from(byte(0) & 0xf) * 4);
            (byte(9), ports_at, word(12) ^ word(16))
        }
        Some(kind) if kind == IPV6 => (byte(6), Some(40), (8..40).step_by(4).fold(0, |all, at| all ^ word(at))),
        _ => return 0,
    };
    let ports = ports_at.filter(|_| WITH_PORTS.contains(&protocol)).map_or(0, word);
    mix(addresses ^ u32::from(protocol), (ports >> 16 ^ ports) as u16)
}

/// Spreads addresses and ports, which differ in few bits (multiplicative hashing by 2^32 divided by the golden ratio).
fn mix(addresses: u32, ports: u16) -> u8 {
    const FACTOR: u32 = 0x9e37_79b9;
    let mixed = (addresses.wrapping_mul(FACTOR) ^ u32::from(ports)).wrapping_mul(FACTOR);
    (mixed >> 24) as u8
}
