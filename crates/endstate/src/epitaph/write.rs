// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing an epitaph: into the memory set aside, nothing else.

use core::fmt::{self, Write};

use super::format::{
    BACKTRACE_ADDRESSES, CHECKSUM, CHECKSUM_BYTES, MAGIC, MAX_HOST_VERSION_BYTES, MAX_REASON_BYTES, Registers, VERSION,
    at,
};

/// Content of the report.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The host's version, as `0.1.0`.
    pub host_version: &'a str,
    /// Time in nanoseconds since the host started.
    pub uptime_ns: u64,
    /// The CPU that owns the end.
    pub cpu: u32,
    /// The reason, and its place: one line.
    pub reason: fmt::Arguments<'a>,
    /// Its registers, where they are known.
    pub registers: Option<&'a Registers>,
    /// Return addresses, nearest first.
    pub backtrace: &'a [u64],
}

/// The memory set aside does not hold an epitaph without any log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall;

impl fmt::Display for TooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory set aside for the epitaph is too small; set aside EPITAPH_BYTES")
    }
}

impl core::error::Error for TooSmall {}

/// Writes an epitaph to the beginning of `page`, and returns how many bytes it takes.
///
/// `log` shows its lines, without their ends, from the oldest to the newest; it is asked twice, and the newest lines
/// that fit are kept. Until the checksum is there, which comes last, there is no epitaph in `page`.
pub fn write(
    page: &mut [u8],
    account: &Account<'_>,
    mut log: impl FnMut(&mut dyn FnMut(&dyn fmt::Display)),
) -> Result<usize, TooSmall> {
    let least = at::TEXT + MAX_HOST_VERSION_BYTES + MAX_REASON_BYTES + CHECKSUM_BYTES;
    let page = page.get_mut(..page.len().min(u32::MAX as usize)).filter(|page| page.len() >= least).ok_or(TooSmall)?;
    page[..at::TEXT].fill(0);
    let host_version = text(&mut page[at::TEXT..][..MAX_HOST_VERSION_BYTES], format_args!("{}", account.host_version));
    let reason_at = at::TEXT + host_version;
    let reason = text(&mut page[reason_at..][..MAX_REASON_BYTES], account.reason);
    let tail_at = reason_at + reason;
    let room = page.len() - CHECKSUM_BYTES;
    let tail = write_tail(&mut page[tail_at..room], &mut log);
    let length = tail_at + tail + CHECKSUM_BYTES;
    write_header(page, account);
    for (at, bytes) in [
        (at::LENGTH, length),
        (at::HOST_VERSION_BYTES, host_version),
        (at::REASON_BYTES, reason),
        (at::TAIL_BYTES, tail),
    ] {
        put_u32(page, at, bytes as u32);
    }
    let checksum = CHECKSUM.checksum(&page[..length - CHECKSUM_BYTES]);
    put_u32(page, length - CHECKSUM_BYTES, checksum);
    Ok(length)
}

fn write_header(page: &mut [u8], account: &Account<'_>) {
    page[..MAGIC.len()].copy_from_slice(&MAGIC);
    put_u32(page, at::VERSION, VERSION);
    put_u64(page, at::TIME, account.uptime_ns);
    put_u32(page, at::CPU, account.cpu);
    put_u32(page, at::HAS_REGISTERS, u32::from(account.registers.is_some()));
    for (index, value) in account.registers.into_iter().flatten().enumerate() {
        put_u64(page, at::REGISTERS_START + index * 8, *value);
    }
    let backtrace = &account.backtrace[..account.backtrace.len().min(BACKTRACE_ADDRESSES)];
    put_u32(page, at::BACKTRACE_COUNT, backtrace.len() as u32);
    for (index, address) in backtrace.iter().enumerate() {
        put_u64(page, at::BACKTRACE + index * 8, *address);
    }
}

/// Writes the newest lines that fit, and returns how many bytes they take.
fn write_tail(room: &mut [u8], log: &mut impl FnMut(&mut dyn FnMut(&dyn fmt::Display))) -> usize {
    let mut total = 0;
    log(&mut |line| total += measure(line));
    let mut excess = total.saturating_sub(room.len());
    let mut used = 0;
    log(&mut |line| {
        if excess > 0 {
            excess = excess.saturating_sub(measure(line));
            return;
        }
        let mut into = Bounded { bytes: &mut room[used..], used: 0 };
        // A line that has become longer since it was measured is left out.
        if writeln!(into, "{line}").is_ok() {
            used += into.used;
        }
    });
    used
}

/// Bytes that a line takes with its end.
fn measure(line: &dyn fmt::Display) -> usize {
    let mut count = Count(0);
    let _ = writeln!(count, "{line}");
    count.0
}

/// Writes as much text as fits whole characters, and returns how many bytes.
fn text(room: &mut [u8], text: fmt::Arguments<'_>) -> usize {
    let mut into = Bounded { bytes: room, used: 0 };
    let _ = into.write_fmt(text);
    into.used
}

struct Count(usize);

impl fmt::Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

struct Bounded<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl fmt::Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let fits = &text[..text.floor_char_boundary(room.len())];
        room[..fits.len()].copy_from_slice(fits.as_bytes());
        self.used += fits.len();
        if fits.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
