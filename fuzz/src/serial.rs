// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UART with registers that read as anything, at any time.

use uart::{FifoDepth, Hardware, Interrupts, Patience, Peer, Policy, Rate, Register, Uart};

use crate::input::Input;

/// An access or a pause takes at least so long, so that every wait ends soon.
const LEAST_STEP_NS: u64 = 100_000;

/// Reads come from the input; bytes written to the data register since the last status read are counted.
struct UntrustedUart<'a> {
    input: Input<'a>,
    now_ns: u64,
    has_clock: bool,
    since_poll: usize,
    depth: usize,
    /// Value of the scratch register, if there is one.
    scratch: Option<u8>,
}

impl UntrustedUart<'_> {
    fn step(&mut self) {
        self.now_ns += LEAST_STEP_NS + u64::from(self.input.u8()) * 1000;
    }
}

impl Hardware for UntrustedUart<'_> {
    fn read(&mut self, register: Register) -> u8 {
        self.step();
        if register == Register::LineStatus {
            self.since_poll = 0;
        }
        match (register, self.scratch) {
            (Register::Scratch, Some(kept)) => kept,
            _ => self.input.u8(),
        }
    }

    fn write(&mut self, register: Register, value: u8) {
        self.step();
        if register == Register::Scratch && self.scratch.is_some() {
            self.scratch = Some(value);
        }
        if register == Register::Data {
            self.since_poll += 1;
            assert!(self.since_poll <= self.depth, "no more than the FIFO holds behind a poll");
        }
    }

    fn now_ns(&mut self) -> Option<u64> {
        self.has_clock.then_some(self.now_ns)
    }

    fn pause(&mut self) {
        self.step();
    }
}

/// Whatever a UART's registers read as, probing, sending and receiving end, and no byte is written that it has no room
/// for.
pub fn uart(data: &[u8]) {
    let mut input = Input(data);
    let (policy, has_clock) = (input.choose(&[Policy::Byte, Policy::Fifo]), input.bool());
    let peer = input.choose(&[Peer::Reads, Peer::Talks]);
    let rate = input.choose(&[115_200, 9600, 300]);
    let scratch = (input.u8() % 8 != 0).then_some(0);
    let mut uart = Uart::new(UntrustedUart { input, now_ns: 0, has_clock: true, since_poll: 0, depth: 65, scratch });
    let Ok(found) = uart.start(Rate::from_baud(rate).expect("it divides"), policy, peer) else { return };
    let depth = if policy == Policy::Byte { FifoDepth::None } else { found.depth };
    (uart.hardware().depth, uart.hardware().since_poll) = (depth.bytes(), 0);
    uart.hardware().has_clock = has_clock && rate != 300;
    while !uart.hardware().input.is_empty() {
        let choice = uart.hardware().input.u8();
        let text = [b'x'; 200];
        let length = usize::from(choice % 200);
        match choice % 6 {
            0 if uart.hardware().has_clock => assert!(uart.send(&text[..length], Patience::USUAL) <= length),
            0 | 1 => assert!(uart.offer(&text[..length]) <= depth.bytes().min(length)),
            2 => assert!(uart.receive(&mut [0; 20]) <= 20),
            3 => uart.watch(Interrupts::all()),
            4 => uart.interrupted(),
            _ => uart.hardware().now_ns += 1_000_000_000,
        }
    }
}
