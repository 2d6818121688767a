// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests over the control channel, and their answers.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use boot::options::GuestStart;
use wire::{LogRecord, MAX_CONSOLE_BYTES, Refusal, RefusalCode, ReplyBody, RequestBody, VmInfo, VmState, page};

use super::configuring;
use super::cpus::{self, CpuOrders};
use super::dump;
use super::guest_lines::Asked;
use super::info;
use super::named::{find, find_in};
use super::saving;
use super::timeline;
use crate::arch::{cpu, fault, timer};
use crate::guests::guest::figures::exits_of;
use crate::guests::guest::{Guest, Order};
use crate::guests::slots::GUESTS;
use crate::guests::{assigned, disks, events, leases, networks, pci, power_button};
use crate::kernel::console::log::{Follower, to_wire};
use crate::kernel::iommu;
use crate::kernel::platform::options;
use crate::lifecycle::end;

/// The most records collected for one page; a frame holds fewer.
const PAGE_RECORDS: usize = 64;
/// The age of a record from which on a page may have it, in microseconds: no CPU takes that long to complete one.
const COMPLETE_AFTER_US: u64 = 1000;

/// Orders the guests that start with the host to start; returns whether there was one.
pub fn start_guests() -> bool {
    let wanted = options().is_none_or(|options| options.guests == GuestStart::Auto);
    let mut autostarted = GUESTS.all().filter(|guest| wanted && guest.settings.autostart()).peekable();
    let any = autostarted.peek().is_some();
    autostarted.for_each(|guest| guest.order(Order::Start));
    any
}

/// Orders all guests to stop.
pub fn stop_guests() {
    let alive = GUESTS.all().filter(|guest| VmState::ALIVE.contains(&guest.status().state) || guest.has_orders());
    alive.for_each(|guest| guest.order(Order::Stop));
}

/// Returns whether a request starts a guest.
pub fn is_start(body: &RequestBody) -> bool {
    matches!(body, RequestBody::VmStart { .. })
}

/// Carries out a request. `None`: it is answered later, by `cpus`.
pub fn answer(asked: Asked, body: RequestBody, cpus: &mut CpuOrders) -> Option<Result<ReplyBody, Refusal>> {
    Some(match body {
        RequestBody::Info => Ok(ReplyBody::Info(info::host())),
        RequestBody::VmList { from_index } => Ok(list(from_index)),
        RequestBody::VmStart { name } => order(&name, Order::Start, VmState::ENDED),
        RequestBody::VmStop { name } => order(&name, Order::Stop, VmState::ALIVE),
        RequestBody::VmPause { name } => pause(&name),
        RequestBody::VmHold { name, ms } => hold(&name, ms),
        RequestBody::VmResume { name } => order(&name, Order::Resume, VmState::CAN_RESUME),
        RequestBody::VmReset { name } => order(&name, Order::Reset, VmState::ALIVE),
        RequestBody::VmShutdown { name } => shutdown(&name),
        RequestBody::VmLayout { name } => find(&name).and_then(|guest| dump::layout(&guest)),
        RequestBody::VmRegisters { name, vcpu } => find(&name).and_then(|guest| dump::registers(&guest, vcpu)),
        RequestBody::VmMemory { name, from_gpa, to_gpa } => {
            find(&name).and_then(|guest| dump::memory(&guest, from_gpa, to_gpa))
        }
        RequestBody::VmSaved { name, from_byte } => saving::page(&name, from_byte),
        RequestBody::VmPerf { name, vcpu } => perf(&name, vcpu),
        RequestBody::ConsoleInput { name, bytes } => console_input(&name, &bytes),
        RequestBody::Log { from_sequence, limit } => Ok(log(from_sequence, limit)),
        RequestBody::Events { from_sequence, limit } => {
            fault::point!(crate::lifecycle::faults::asked_for_events());
            Ok(event_page(from_sequence, limit))
        }
        RequestBody::Epitaph { from_line } => Ok(epitaph(from_line)),
        RequestBody::Subscribe(_)
        | RequestBody::SubscribeConsoles { .. }
        | RequestBody::PowerOff
        | RequestBody::Restart
        | RequestBody::RestartUploaded
        | RequestBody::Update { .. }
        | RequestBody::UpdateUnlessConfirmed { .. }
        | RequestBody::Confirm
        | RequestBody::UploadBegin { .. }
        | RequestBody::UploadData { .. }
        | RequestBody::UploadPacked { .. }
        | RequestBody::UploadDrop
        | RequestBody::PermitDowngrade
        | RequestBody::ProfileBegin { .. }
        | RequestBody::ProfileRead { .. }
        | RequestBody::CaptureBegin { .. }
        | RequestBody::CaptureRead { .. }
        | RequestBody::VmRestore { .. }
        | RequestBody::PciAssign { .. }
        | RequestBody::PciRelease { .. }
        | RequestBody::CpuPerf { .. }
        | RequestBody::SessionBegin { .. }
        | RequestBody::Signed(_)
        | RequestBody::ControlKeys
        | RequestBody::RevokeControlKey { .. } => Err(Refusal {
            code: RefusalCode::Failed,
            reason: "that is answered where requests are read".into(),
            hint: String::new(),
        }),
        RequestBody::Timeline { from } => Ok(timeline::page(from)),
        RequestBody::CpuList { from_index } => Ok(cpus::list(from_index)),
        RequestBody::CpuOffline { index } => return cpus.take_offline(asked, index),
        RequestBody::CpuOnline { index } => cpus.bring_online(index),
        RequestBody::PciList { from_index } => {
            let holder = |place| assigned::holder(place).map(|guest| guest.config.name.clone());
            Ok(pci::listing::list(from_index, holder))
        }
        RequestBody::Config { from_byte } => Ok(configuring::page(from_byte)),
        RequestBody::VmSet { name, settings } => configuring::set(&name, &settings),
        RequestBody::VmDelete { name } => configuring::delete(&name),
        RequestBody::VmCreate { manifest } => configuring::create(&manifest),
        RequestBody::FileList { from_index } => Ok(configuring::files(from_index)),
        RequestBody::FileRemove { name } => configuring::remove_file(&name),
        RequestBody::NetList { from_index } => Ok(networks::listing::list(from_index)),
        RequestBody::DiskList { from_index } => Ok(disks::list(from_index)),
        RequestBody::Iommus => Ok(ReplyBody::Iommus(iommu::list())),
        RequestBody::Vulnerabilities => Ok(ReplyBody::Vulnerabilities(info::vulnerabilities())),
    })
}

/// Pauses a guest; one that is paused for a reader stays so when the reader has gone.
pub fn pause(name: &str) -> Result<ReplyBody, Refusal> {
    let was_held = find(name)?.lease().end();
    if was_held { Ok(ReplyBody::Done) } else { order(name, Order::Pause, VmState::CAN_PAUSE) }
}

/// Pauses a guest for a reader, or goes on doing so.
///
/// # Errors
/// It cannot be paused.
fn hold(name: &str, ms: u32) -> Result<ReplyBody, Refusal> {
    let guest = find(name)?;
    if !guest.lease().is_running() {
        pause(name)?;
    }
    leases::begin(&guest, ms);
    Ok(ReplyBody::Done)
}

fn order(name: &str, order: Order, allowed: &[VmState]) -> Result<ReplyBody, Refusal> {
    let guest = find_in(name, allowed)?;
    guest.lease().end();
    guest.order(order);
    Ok(ReplyBody::Done)
}

/// Presses the guest's power button. The answer does not wait for what the guest makes of it.
fn shutdown(name: &str) -> Result<ReplyBody, Refusal> {
    let guest = find_in(name, VmState::CAN_SHUT_DOWN)?;
    let refused = |(reason, hint): (&str, &str)| Refusal {
        code: RefusalCode::WrongState,
        reason: format!("guest '{name}' cannot be asked to shut down: {reason}"),
        hint: hint.into(),
    };
    power_button::press(&guest).map(|()| ReplyBody::Done).map_err(refused)
}

/// Returns a vCPU's latest statistics. Where no CPU holds it there are no new ones.
fn perf(name: &str, vcpu: u32) -> Result<ReplyBody, Refusal> {
    let guest = find(name)?;
    let state = guest.status().state;
    if !VmState::ALIVE.contains(&state) || vcpu >= guest.config.vcpus {
        return Err(Refusal {
            code: RefusalCode::WrongState,
            reason: format!("guest '{name}' is {state} and has {} vCPUs", guest.config.vcpus),
            hint: "ask for one of them while it is loaded".to_string(),
        });
    }
    let asked_ns = timer::uptime_ns();
    Ok(ReplyBody::Perf { asked_ns, latest: guest.read_figures(vcpu as usize).map(Box::new) })
}

fn console_input(name: &str, bytes: &[u8]) -> Result<ReplyBody, Refusal> {
    let guest = find(name)?;
    let invalid = |reason: &str, hint: String| Refusal { code: RefusalCode::Invalid, reason: reason.into(), hint };
    if bytes.len() > MAX_CONSOLE_BYTES {
        return Err(invalid("too much console input at once", format!("send at most {MAX_CONSOLE_BYTES} bytes")));
    }
    let mut ends = guest.control_ends();
    let taken = bytes.iter().take_while(|&&byte| ends.input.enqueue(byte).is_ok()).count();
    drop(ends);
    guest.poll_devices();
    if taken < bytes.len() {
        let hint = format!("{taken} of {} bytes were taken; send the rest when it has read them", bytes.len());
        return Err(Refusal {
            code: RefusalCode::Exhausted,
            reason: "the guest does not read its console".into(),
            hint,
        });
    }
    Ok(ReplyBody::Done)
}

fn list(from_index: u32) -> ReplyBody {
    let rest = GUESTS.all().skip(from_index as usize);
    let vms = page::fill(rest.map(|guest| describe(&guest)), PAGE_RECORDS);
    let next = from_index as usize + vms.len();
    ReplyBody::Vms { vms, next_index: (next < GUESTS.all().count()).then_some(next as u32) }
}

fn describe(guest: &Guest) -> VmInfo {
    let status = guest.status();
    VmInfo {
        name: guest.config.name.clone(),
        state: status.state,
        vcpus: guest.config.vcpus,
        memory_bytes: guest.config.memory_bytes,
        resident_bytes: info::resident_bytes(guest),
        cpus: guest.cpus(),
        since_ns: status.since_ns,
        throttled_since_ns: guest.health.throttled_since_ns(),
        exits_total: guest.exits.iter().map(|counters| counters.total()).sum(),
        exits: exits_of(&guest.exits, 0..guest.exits.len()),
        reason: status.reason.map(|reason| wire::bounded(&reason, wire::MAX_REASON_BYTES).to_string()),
        console: guest.console_written(),
    }
}

/// The records from a place on, of all CPUs in the order of their times. A place is a time in ticks, so that
/// the requester keeps no more than that; records of one time are never parted by the end of a page.
fn log(from_sequence: u64, limit: u16) -> ReplyBody {
    let most = usize::from(limit).min(PAGE_RECORDS);
    let (mut reader, mut found) = (Follower::since(from_sequence), Vec::new());
    // A record that new may be overtaken by one that another CPU is just completing: it waits for the next page.
    let newest = cpu::tsc().saturating_sub(timer::us_to_ticks(COMPLETE_AFTER_US));
    while found.len() <= most
        && let Some(record) = reader.next()
    {
        let borrowed = to_wire(&record);
        let module = borrowed.module.into_owned().into();
        let owned = LogRecord { module, text: borrowed.text.into_owned().into(), ..borrowed };
        if reader.ticks() >= newest {
            break;
        }
        found.push((reader.ticks(), owned));
    }
    let times: Vec<u64> = found.iter().map(|(ticks, _)| *ticks).collect();
    let mut records: Vec<LogRecord<'static>> = page::fill(found.into_iter().map(|(_, record)| record), most);
    // The first that is left out determines where the next page begins; those of its time are left out with it.
    let next_sequence = match times.get(records.len()) {
        Some(&left_out) if times.first() != Some(&left_out) => {
            records.truncate(times.partition_point(|&ticks| ticks < left_out));
            left_out
        }
        _ => times[..records.len()].last().map_or(from_sequence, |last| last + 1),
    };
    ReplyBody::Log { records, next_sequence }
}

fn epitaph(from_line: u32) -> ReplyBody {
    let all = end::previous::lines();
    let lines = page::fill(all.iter().skip(from_line as usize).cloned(), PAGE_RECORDS);
    let next = from_line.saturating_add(lines.len() as u32);
    let next_line = ((next as usize) < all.len()).then_some(next);
    ReplyBody::Epitaph { lines, next_line, log_until_ns: end::previous::log_until_ns() }
}

fn event_page(from_sequence: u64, limit: u16) -> ReplyBody {
    let mut found = Vec::new();
    let most = usize::from(limit).min(PAGE_RECORDS);
    events::visit_from(from_sequence, |event| {
        found.push(event.clone());
        found.len() < most
    });
    let events = page::fill(found, most);
    let next_sequence = events.last().map_or(from_sequence, |event| event.sequence + 1);
    ReplyBody::Events { events, next_sequence }
}
