// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of GDB's remote serial protocol as it takes to stop an emulated machine at an address, step it, and let it
//! go again.
//!
//! The machine stands still between the two, so the time at which it is let go is the time of that very
//! instruction, without what ran before it (firmware, loader, hypervisor).
//!
//! A packet is `$`, the payload, `#` and the payload's sum modulo 256 in two hexadecimal digits; the receiver answers
//! `+`.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Longest time for the emulator to open its socket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time within which it answers an order.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// No answer that we ask for is longer.
const MAX_PACKET_BYTES: usize = 64 * 1024;

/// The emulator's arguments for a machine that waits for a debugger at `socket` before its first instruction.
pub fn arguments(socket: &Path) -> Vec<OsString> {
    // The emulator's option parser wants commas doubled.
    let path = socket.to_string_lossy().replace(',', ",,");
    let device = format!("socket,id=debugger,path={path},server=on,wait=off");
    ["-S", "-chardev", &device, "-gdb", "chardev:debugger"].map(OsString::from).to_vec()
}

/// Registers by their numbers in this protocol, for this CPU.
const STACK_POINTER: u8 = 7;
const INSTRUCTION_POINTER: u8 = 16;

/// A machine under control.
pub struct Debugger {
    socket: UnixStream,
    received: Vec<u8>,
    /// The address at which the running machine stops.
    breakpoint: Option<u64>,
}

/// A defect of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The sum is another.
    #[error("a packet's checksum is {found:?}, not {expected:?}")]
    Checksum {
        /// The checksum behind the payload.
        found: String,
        /// The payload's checksum.
        expected: String,
    },
    /// It has no end.
    #[error("a packet is longer than {MAX_PACKET_BYTES} bytes")]
    TooLong,
}

impl Debugger {
    fn over(socket: UnixStream) -> Self {
        Self { socket, received: Vec::new(), breakpoint: None }
    }

    /// Connects to the emulator, which may still be starting.
    pub fn connect(socket: &Path) -> Result<Self> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        loop {
            match UnixStream::connect(socket) {
                Ok(socket) => return Ok(Self::over(socket)),
                Err(error) if Instant::now() >= deadline => {
                    return Err(error).context("the emulator's debugger socket does not open");
                }
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Lets the machine run until a CPU is about to execute the instruction at the linear address `address`,
    /// whatever mode or world it is in. [`Self::wait_stopped`] waits for that.
    pub fn run_to(&mut self, address: u64) -> Result<()> {
        self.order(&format!("Z1,{address:x},1"))?;
        self.breakpoint = Some(address);
        self.send("c")
    }

    /// Waits until the machine has stopped at the address of [`Self::run_to`], and removes the breakpoint.
    pub fn wait_stopped(&mut self, timeout: Duration) -> Result<()> {
        let address = self.breakpoint.take().context("the machine has no breakpoint")?;
        let stopped = self.answer("c", timeout).with_context(|| format!("the machine did not come to {address:#x}"))?;
        if !stopped.starts_with(['T', 'S']) {
            bail!("the machine did not stop at {address:#x}; the emulator's debugger printed {stopped:?}");
        }
        self.order(&format!("z1,{address:x},1"))
    }

    /// Lets the machine run until it is about to execute the instruction there.
    pub fn stop_at(&mut self, address: u64, timeout: Duration) -> Result<()> {
        self.run_to(address)?;
        self.wait_stopped(timeout)
    }

    /// Executes single instructions until the function that was just entered returns; returns their number.
    pub fn steps_to_return(&mut self, most: usize) -> Result<usize> {
        let stack = self.register(STACK_POINTER)?;
        let behind = self.ask(&format!("m{stack:x},8"))?;
        let behind = little_endian(&behind).with_context(|| format!("no return address: {behind:?}"))?;
        for steps in 1..=most {
            let stopped = self.ask("s")?;
            if !stopped.starts_with(['T', 'S']) {
                bail!("the emulator's debugger answers {stopped:?} to a step");
            }
            if self.register(INSTRUCTION_POINTER)? == behind {
                return Ok(steps);
            }
        }
        bail!("a function was not left within {most} instructions")
    }

    fn register(&mut self, number: u8) -> Result<u64> {
        let digits = self.ask(&format!("p{number:x}"))?;
        little_endian(&digits).with_context(|| format!("register {number} is {digits:?}"))
    }

    fn ask(&mut self, payload: &str) -> Result<String> {
        self.send(payload)?;
        self.answer(payload, ANSWER_TIMEOUT)
    }

    /// Lets the machine run without the debugger.
    pub fn detach(&mut self) -> Result<()> {
        self.order("D")
    }

    fn order(&mut self, payload: &str) -> Result<()> {
        match self.ask(payload)?.as_str() {
            "OK" => Ok(()),
            other => bail!("the emulator's debugger answers {other:?} to {payload:?}"),
        }
    }

    fn send(&mut self, payload: &str) -> Result<()> {
        self.socket.write_all(&encode(payload)).context("the emulator has closed its debugger socket")
    }

    fn answer(&mut self, payload: &str, timeout: Duration) -> Result<String> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(answer) = take_packet(&mut self.received)? {
                // A peer that has gone needs no acknowledgement.
                let _ = self.socket.write_all(b"+");
                return Ok(answer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("the emulator's debugger did not answer {payload:?} within {timeout:?}");
            }
            self.receive(left)?;
        }
    }

    fn receive(&mut self, timeout: Duration) -> Result<()> {
        self.socket.set_read_timeout(Some(timeout))?;
        let mut buffer = [0; 4096];
        match self.socket.read(&mut buffer) {
            Ok(0) => bail!("the emulator has closed its debugger socket; it has probably ended"),
            Ok(count) => self.received.extend(&buffer[..count]),
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Eight bytes in hexadecimal digits, the least first.
fn little_endian(digits: &str) -> Option<u64> {
    let is_whole = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_whole.then(|| u64::from_str_radix(digits, 16).ok().map(u64::swap_bytes)).flatten()
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// A packet around a payload. None of our payloads has a byte that would need escaping.
fn encode(payload: &str) -> Vec<u8> {
    format!("${payload}#{}", checksum(payload.as_bytes())).into_bytes()
}

fn checksum(payload: &[u8]) -> String {
    format!("{:02x}", payload.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte)))
}

/// Takes the first whole packet and what stands before it (acknowledgements) out of what was received.
fn take_packet(received: &mut Vec<u8>) -> Result<Option<String>, PacketError> {
    let Some(start) = received.iter().position(|&byte| byte == b'$') else { return Ok(None) };
    let end = received[start..].iter().position(|&byte| byte == b'#').map(|length| start + length);
    let Some(end) = end.filter(|end| received.len() >= end + 3) else {
        return if received.len() > MAX_PACKET_BYTES { Err(PacketError::TooLong) } else { Ok(None) };
    };
    let (payload, found) = (&received[start + 1..end], &received[end + 1..end + 3]);
    let (expected, found) = (checksum(payload), String::from_utf8_lossy(found).to_ascii_lowercase());
    if expected != found {
        return Err(PacketError::Checksum { found, expected });
    }
    let payload = String::from_utf8_lossy(payload).into_owned();
    received.drain(..end + 3);
    Ok(Some(payload))
}
