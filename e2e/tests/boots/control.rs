// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control channel: what it answers, and what it does with what is no request.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use baton::client::Client;
use e2e::bare::BareHost;
use e2e::host::Host;
use e2e::transcript::Transcript;
use e2e::{frames, recipe::Recipe};
use lab::What;
use wire::{EventKind, ExitKind, LogRecord, RefusalCode, RequestBody, Stream, Subscription, UpdateBy, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("the_host_reports_itself_and_its_guests", the_host_reports_itself_and_its_guests),
    ("log_and_events_are_whole_and_in_order", log_and_events_are_whole_and_in_order),
    ("impossible_requests_are_refused_with_the_hint", impossible_requests_are_refused_with_the_hint),
    ("the_host_refuses_what_is_no_request_and_goes_on", the_host_refuses_what_is_no_request_and_goes_on),
    ("noise_on_the_line_is_survived", noise_on_the_line_is_survived),
    ("the_host_sends_the_consoles_that_a_client_has_chosen_until_an_update", a_choice_of_consoles),
    (
        "a_line_that_echoes_costs_the_host_a_few_frames_a_second",
        a_line_that_echoes_costs_the_host_a_few_frames_a_second,
    ),
    ("a_reader_that_stalls_finds_the_host_as_it_was", a_reader_that_stalls_finds_the_host_as_it_was),
    ("the_broker_keeps_from_the_host_what_is_no_request", the_broker_keeps_from_the_host_what_is_no_request),
];

const GUEST: &str = "debian";

fn with_heartbeat() -> Result<Host> {
    let mut host = Recipe::new().beating(GUEST)?.start()?;
    host.beats(GUEST, 1)?;
    Ok(host)
}

/// A CPU that claims to have IBPB and IBRS. The emulator has neither: it ignores writes to PRED_CMD, and
/// SPEC_CTRL reads as zero whatever was written. So barriers are "done", and no guest is informed of SPEC_CTRL.
const CLAIMS: &str = "max,x-force-features=on,+ibpb,+ibrs";

fn the_host_reports_itself_and_its_guests() -> Result<()> {
    let recipe = Recipe { cpu: CLAIMS, ..Recipe::new().with_fault_points().options("selftest=refused-register") };
    let mut host = recipe.linux(GUEST, "heartbeat:50")?.start()?;
    host.beats(GUEST, 1)?;
    reports_vulnerabilities(&mut host)?;
    let info = host.client()?.info()?;
    ensure!(info.version == env!("CARGO_PKG_VERSION") && info.cpus == 2, "{info:?}");
    ensure!(
        info.virtualization == wire::Virtualization::Svm && info.features.contains(&"nested-paging".into()),
        "{info:?}"
    );
    ensure!(info.memory_free_bytes + (256 << 20) < info.memory_total_bytes, "{info:?}");
    ensure!(info.host_overhead_bytes > 0 && info.host_overhead_bytes < 32 << 20, "the host takes {info:?}");
    ensure!((100_000_000..10_000_000_000).contains(&info.tsc_hz), "{info:?}");
    let first = host.vm(GUEST)?;
    ensure!(first.state == VmState::Running && first.vcpus == 1 && first.memory_bytes == 256 << 20, "{first:?}");
    host.beats(GUEST, 10)?;
    let second = host.vm(GUEST)?;
    ensure!(second.exits_total > first.exits_total, "{first:?} {second:?}");
    ensure!(second.exits_total == second.exits.iter().map(|exit| exit.count).sum::<u64>(), "{second:?}");
    for kind in [ExitKind::Cpuid, ExitKind::Port, ExitKind::Halt, ExitKind::MsrWrite] {
        ensure!(second.exits.iter().any(|exit| exit.kind == kind && exit.count > 0), "no {kind:?} in {second:?}");
    }
    host.powers_off()
}

fn reports_vulnerabilities(host: &mut Host) -> Result<()> {
    let rows = host.client()?.vulnerabilities()?;
    let status = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.status.as_str());
    ensure!(
        status("meltdown") == Some("Not affected") && status("spec_rstack_overflow") == Some("Not affected"),
        "{rows:?}"
    );
    ensure!(status("spectre_v2") == Some("Mitigation: IBPB on VMEXIT; IBPB: between guests"), "{rows:?}");
    let log = whole_log(&mut host.client()?)?;
    for line in ["CPUID shows SpecCtrl, but its register does not work", "refused a write, and the host goes on"] {
        ensure!(log.iter().any(|record| record.text.contains(line)), "no {line:?} in {log:#?}");
    }
    Ok(())
}

fn whole_log(client: &mut Client) -> Result<Vec<LogRecord<'static>>> {
    let (mut log, mut next) = (Vec::new(), 0);
    loop {
        let (records, after) = client.log(next)?;
        if records.is_empty() {
            return Ok(log);
        }
        log.extend(records);
        next = after;
    }
}

fn log_and_events_are_whole_and_in_order() -> Result<()> {
    let mut host = with_heartbeat()?;
    let mut client = host.client()?;
    let log = whole_log(&mut client)?;
    for cpu in 0..2 {
        let numbers = log.iter().filter(|record| record.cpu == cpu).map(|record| record.sequence);
        ensure!(numbers.eq(0..log.iter().filter(|record| record.cpu == cpu).count() as u64), "{log:#?}");
    }
    ensure!(log.is_sorted_by_key(|record| record.time_ns), "{log:#?}");
    ensure!(log[0].text.contains("Baton") && log.iter().any(|record| record.text.contains("host ready")), "{log:#?}");
    host.order(RequestBody::VmPause { name: GUEST.to_owned() })?;
    host.event(&EventKind::VmPaused { name: GUEST.to_owned() })?;
    let (events, _) = client.events(0)?;
    let kinds: Vec<EventKind> = events.iter().map(|event| event.kind.clone()).collect();
    let name = GUEST.to_owned();
    let expected = [EventKind::HostReady, EventKind::VmStarted { name: name.clone() }, EventKind::VmPaused { name }];
    ensure!(kinds == expected, "{kinds:?}");
    ensure!(kinds == host.seen.events, "sent unasked: {:?}", host.seen.events);
    host.powers_off()
}

fn impossible_requests_are_refused_with_the_hint() -> Result<()> {
    let mut host = with_heartbeat()?;
    let name = || GUEST.to_owned();
    let cases = [
        (RequestBody::VmStop { name: "debain".into() }, RefusalCode::UnknownVm, GUEST),
        (RequestBody::VmStart { name: name() }, RefusalCode::WrongState, "stopped"),
        (RequestBody::VmResume { name: name() }, RefusalCode::WrongState, "paused"),
        (RequestBody::ConsoleInput { name: "x".repeat(300), bytes: vec![1] }, RefusalCode::UnknownVm, GUEST),
        (RequestBody::ConsoleInput { name: name(), bytes: vec![0; 1025] }, RefusalCode::Invalid, "1024"),
    ];
    for (body, code, hint) in cases {
        let refusal = host.refusal(body)?;
        ensure!(refusal.code == code && refusal.hint.contains(hint), "{refusal:?}");
    }
    host.beats(GUEST, 5)?;
    host.powers_off()
}

/// Returns what is no request, with a part of the reason that is to be given.
fn no_requests() -> Result<Vec<(&'static str, Vec<u8>, &'static str)>> {
    Ok(vec![
        ("garbage", b"GET / HTTP/1.1\r\n\r\n\0".to_vec(), "garbage"),
        ("a truncated frame", frames::truncated()?, ""),
        ("a frame of another version", frames::of_unknown_version(), "version"),
        ("a frame that is no message", frames::of_unknown_content(), ""),
        ("a frame that is too long", frames::too_long(), "4096"),
        ("a host's frame", frames::answer()?, "request"),
    ])
}

fn the_host_refuses_what_is_no_request_and_goes_on() -> Result<()> {
    let mut host = BareHost::start(&Recipe::new().beating(GUEST)?)?;
    host.drain_answers()?;
    for (what, bytes, part) in no_requests()? {
        let refusal = host.refusal_of(&bytes)?;
        ensure!(!refusal.reason.is_empty() && refusal.reason.contains(part), "{what}: {refusal}");
        host.info()?;
    }
    let refusal = host.refusal_of(&frames::of_a_newer_release())?;
    ensure!(refusal.reason.contains("does not know the request"), "{refusal}");
    host.info()?;
    // A client that dies in the middle of a frame: what comes next begins where it stopped.
    let question = frames::question()?;
    host.send(&question[..question.len() / 2])?;
    host.drain_answers()?;
    let before = host.first_vm()?;
    std::thread::sleep(Duration::from_millis(500));
    let after = host.first_vm()?;
    ensure!(after.state == VmState::Running && after.exits_total > before.exits_total, "{before:?} {after:?}");
    Ok(())
}

/// The line sends back what the host answers, which is no request: without a limit, for ever.
fn a_line_that_echoes_costs_the_host_a_few_frames_a_second() -> Result<()> {
    let mut host = BareHost::start(&Recipe::new().beating(GUEST)?)?;
    host.drain_answers()?;
    let echoed = host.echo(Duration::from_secs(2))?;
    ensure!((16..64).contains(&echoed), "{echoed} frames came in 2 s");
    host.drain_answers()?;
    ensure!(host.first_vm()?.state == VmState::Running, "the guest does not run");
    Ok(())
}

fn noise_on_the_line_is_survived() -> Result<()> {
    let mut host = BareHost::start(&Recipe::new().beating(GUEST)?)?;
    host.send(&frames::noise(16 * 1024))?;
    host.drain_answers()?;
    let before = host.first_vm()?;
    std::thread::sleep(Duration::from_millis(500));
    let after = host.first_vm()?;
    ensure!(after.state == VmState::Running && after.exits_total > before.exits_total, "{before:?} {after:?}");
    Ok(())
}

/// The next image does not know the choice: it sends all consoles, which the client notices.
fn a_choice_of_consoles() -> Result<()> {
    let mut host = BareHost::start(&Recipe::new().beating("a")?.beating("b")?)?;
    host.drain_answers()?;
    let chosen = host.client().subscribe_consoles(Subscription::default(), &["b", "unknown"])?;
    ensure!(chosen, "the host knows no choice");
    let names = |host: &mut BareHost| -> Result<BTreeSet<String>> {
        let (mut names, end) = (BTreeSet::new(), Instant::now() + Duration::from_secs(5));
        while Instant::now() < end {
            if let Some(Stream::Console { name, .. }) = host.client().next(Duration::from_millis(100))? {
                names.insert(name.into_owned());
            }
        }
        Ok(names)
    };
    let seen = names(&mut host)?;
    ensure!(seen == BTreeSet::from(["b".to_owned()]), "{seen:?}");
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    host.client().request_within(Duration::from_secs(60), update)?;
    let seen = names(&mut host)?;
    ensure!(seen.len() == 2, "{seen:?}");
    host.client().subscribe_consoles(Subscription::default(), &["a"])?;
    // Messages that were on their way are left out.
    while host.client().next(Duration::ZERO)?.is_some() {}
    let seen = names(&mut host)?;
    ensure!(seen == BTreeSet::from(["a".to_owned()]), "{seen:?}");
    Ok(())
}

/// Long enough that nothing on the way holds what the guest has written meanwhile: beats are missing where the way
/// was full. Those before and behind came whole, the guest was not held up, and all of the host's answers came.
fn a_reader_that_stalls_finds_the_host_as_it_was() -> Result<()> {
    let mut host = BareHost::start(&Recipe::new().linux(GUEST, "heartbeat:1")?)?;
    host.drain_answers()?;
    host.subscribe(Subscription { consoles: true, ..Subscription::default() })?;
    let before = host.first_vm()?;
    std::thread::sleep(Duration::from_secs(20));
    host.drain_answers()?;
    let after = host.first_vm()?;
    ensure!(after.state == VmState::Running && after.exits_total > before.exits_total, "{before:?} {after:?}");
    let (mut seen, end) = (Transcript::default(), Instant::now() + Duration::from_secs(60));
    let steps = |seen: &Transcript| {
        seen.heartbeats(GUEST).windows(2).map(|two| two[1].wrapping_sub(two[0])).collect::<Vec<_>>()
    };
    let goes_on = |steps: &[u64]| steps.iter().rev().take_while(|step| **step == 1).count() >= 20;
    while steps(&seen).iter().all(|step| *step == 1) || !goes_on(&steps(&seen)) {
        ensure!(Instant::now() < end, "no blackout, or nothing behind it: {:?}", steps(&seen));
        if let Some(Stream::Console { name, bytes }) = host.client().next(Duration::from_secs(1))? {
            seen.add(What::Console { name: name.into_owned(), bytes: bytes.into_owned() });
        }
    }
    ensure!(host.info()?.uptime_ns > 20_000_000_000);
    Ok(())
}

fn the_broker_keeps_from_the_host_what_is_no_request() -> Result<()> {
    let mut host = with_heartbeat()?;
    for (what, bytes, part) in no_requests()? {
        let mut client = connect(&host)?;
        client.write_all(&bytes)?;
        match Client::over(client).request(RequestBody::Info) {
            Ok(reply) => bail!("{what} was taken for a request: {reply:?}"),
            Err(error) => {
                let refusal = error.downcast::<wire::Refusal>()?;
                ensure!(refusal.code == RefusalCode::Protocol && refusal.reason.contains(part), "{what}: {refusal}");
            }
        }
    }
    // A tool that is newer than the broker is refused this request, and not the next one.
    let mut newer = connect(&host)?;
    newer.write_all(&frames::of_a_newer_release())?;
    Client::over(newer).request(RequestBody::Info)?;
    for _ in 0..20 {
        let question = frames::question()?;
        connect(&host)?.write_all(&question[..question.len() / 2])?;
    }
    host.is_up()?;
    host.beats(GUEST, 5)?;
    let has_noticed = host.seen.events.iter().any(|event| matches!(event, EventKind::Garbage { .. }));
    ensure!(!has_noticed, "the host has noticed:\n{}", host.seen);
    host.powers_off()
}

fn connect(host: &Host) -> Result<UnixStream> {
    Ok(UnixStream::connect(host.control_socket())?)
}
