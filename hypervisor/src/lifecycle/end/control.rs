// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control channel of a host that has ended: it reports what host it was and its log, can be powered off, and
//! refuses all else. Streams that were subscribed to have ended with the host.

use handover::image::SECURITY_VERSION;
use uart::{Interrupts, Patience, Peer, Policy, Rate};
use wire::frugal::{Asked, BorrowedInfo, Listener, Question, Reply};
use wire::{ApicMode, LogRecord, RefusalCode, Virtualization};

use crate::arch::boot::BUILD;
use crate::arch::serial::{self, Uart};
use crate::arch::{apic, percpu, stack, strays, timer};
use crate::guests::configuration;
use crate::kernel::cpus::VIRTUALIZATION;
use crate::kernel::platform::boot_info;
use crate::kernel::{console, inherited};
use crate::lifecycle::shutdown;

/// Bytes of the longest answer: one record of the log.
const ANSWER_BYTES: usize = 1024;
/// The number of an answer to what could not be read.
const NO_QUESTION: u32 = 0;

/// The channel as the owner of the end holds it.
pub(super) struct Listening {
    uart: Uart,
    listener: Listener,
}

impl Listening {
    /// Takes the UART over from the CPU that served it, once the last words are out
    /// ([`super::set_last_words`]).
    pub fn start() -> Self {
        let mut uart = serial::com2();
        // Absent, it takes nothing and nothing comes from it.
        let _ = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Talks);
        uart.watch(Interrupts::RECEIVED);
        // Half a frame may have gone out before: a zero ends it.
        uart.send(&[0], Patience::LAST_WORDS);
        Self { uart, listener: Listener::new() }
    }

    /// Answers everything that has come in.
    pub fn serve(&mut self) {
        let mut bytes = [0; 16];
        loop {
            let count = self.uart.receive(&mut bytes);
            if count == 0 {
                return;
            }
            for &byte in &bytes[..count] {
                match self.listener.push_byte(byte) {
                    None => {}
                    Some(Ok(question)) => answer(&mut self.uart, question),
                    Some(Err(_)) => send(&mut self.uart, NO_QUESTION, &refusal("it does not answer this request")),
                }
            }
        }
    }
}

/// Where requests have to be signed, a host that has ended refuses all: it checks no signature.
fn answer(uart: &mut Uart, question: Question) {
    if configuration::host().demands_sessions() {
        let hint = "its requests had to be signed, and it checks none any more: see COM1, key b there resets it";
        return send(uart, question.id, &refusal(hint));
    }
    match question.asked {
        Asked::Info => send(uart, question.id, &Reply::Info(describe())),
        Asked::Log { from_sequence, .. } => answer_log(uart, question.id, from_sequence),
        Asked::PowerOff => {
            send(uart, question.id, &Reply::Done);
            uart.drain(Patience::LAST_WORDS);
            shutdown::power_off()
        }
        Asked::Other => {
            send(uart, question.id, &refusal("it answers `baton log` and `baton info`, and can be powered off"))
        }
    }
}

/// A page of one record: the tool asks for the next one. Places are counted here from the oldest record that is kept.
fn answer_log(uart: &mut Uart, id: u32, from_sequence: u64) {
    let mut is_sent = false;
    console::first_record_from(from_sequence, &mut |record| {
        send(uart, id, &Reply::Log { records: &[record], next_sequence: from_sequence.saturating_add(1) });
        is_sent = true;
    });
    if !is_sent {
        let none: &[LogRecord<'_>] = &[];
        send(uart, id, &Reply::Log { records: none, next_sequence: from_sequence });
    }
}

fn refusal(hint: &'static str) -> Reply<'static> {
    Reply::Refused { code: RefusalCode::Failed, reason: "this host has ended", hint }
}

fn send(uart: &mut Uart, id: u32, reply: &Reply<'_>) {
    let mut buffer = [0; ANSWER_BYTES];
    // An answer that does not fit is not sent, and the tool waits in vain: no answer of these is so long.
    if let Ok(bytes) = reply.encode(id, &mut buffer) {
        uart.send(bytes, Patience::LAST_WORDS);
    }
}

/// Returns the host's description. Fields that need a lock are left at 0.
fn describe() -> BorrowedInfo<'static> {
    let (unclaimed_nmis, unexpected_interrupts, last_unexpected_vector) = strays::counts();
    BorrowedInfo {
        version: concat!(env!("CARGO_PKG_VERSION"), " (this host has ended)"),
        image_bytes: stack::image_bytes(),
        cpus: percpu::online(),
        memory_total_bytes: boot_info().map_or(0, |boot| boot.memory_map.usable_bytes()),
        memory_free_bytes: 0,
        host_overhead_bytes: 0,
        uptime_ns: timer::uptime_ns(),
        virtualization: VIRTUALIZATION.get().map_or(Virtualization::None, |(kind, _)| *kind),
        features: &[],
        apic_mode: match apic::mode() {
            apic::Mode::Xapic => ApicMode::XApic,
            apic::Mode::X2apic => ApicMode::X2Apic,
        },
        tsc_hz: timer::tsc_hz(),
        generation: inherited::generation(),
        build: BUILD,
        security_version: SECURITY_VERSION,
        permits_downgrade: false,
        oldest_handover: handover::OLDEST_VERSION,
        newest_handover: handover::VERSION,
        trusted_keys: &[],
        unclaimed_nmis,
        unexpected_interrupts,
        last_unexpected_vector,
        signer: None,
    }
}
