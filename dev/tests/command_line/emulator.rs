// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulator with a host in it that has one guest called "debian". The variable [`BEHAVIOUR`] selects how the host
//! behaves:
//!
//! | word | behaviour |
//! |---|---|
//! | `greet` | the guest greets, then the host ends well |
//! | `poweroff` | the host ends without output of the guest |
//! | `panic` | the host prints a backtrace and ends with the code of a panic |
//! | `mute` | the host never answers |
//! | `stubborn` | the host accepts the order to power off, and runs on |
//! | `unresponsive` | the host does not answer requests for memory |
//! | `ignores` | the guest ignores its power button |
//! | nothing | the host runs until it is powered off |

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use lab::GREETING;
use wire::exit_code::ExitCode as HostCode;
use wire::*;

/// The variable that selects how the host behaves.
pub const BEHAVIOUR: &str = "BATON_TEST_BEHAVIOUR";

struct Host {
    wire: UnixStream,
    behaviour: String,
    sequence: u64,
    /// True while the guest is held for a reader.
    is_held: bool,
    /// The reason for which the guest has ended.
    ended: Option<&'static str>,
}

pub fn run() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let connect = |prefix: &str| {
        let socket = arguments.iter().find_map(|argument| argument.strip_prefix(prefix)).expect("a path");
        UnixStream::connect(socket).expect("the lab listens")
    };
    let behaviour = std::env::var(BEHAVIOUR).expect("a behaviour");
    let wire = connect("socket,id=control,path=");
    // It reports nothing on its monitor.
    let _monitor = connect("socket,id=shutdown,path=");
    println!("a host with {behaviour:?}");
    if behaviour.contains("mute") {
        eprintln!("the emulator reports something");
        thread::sleep(Duration::from_secs(1000));
    }
    if behaviour.contains("panic") {
        println!("panicked\n  #0 0x1");
        return ExitCode::from(HostCode::Panicked.process_status() as u8);
    }
    Host { wire, behaviour, sequence: 0, is_held: false, ended: None }.serve()
}

impl Host {
    fn serve(&mut self) -> ExitCode {
        let (mut decoder, mut buffer) = (Decoder::new(), [0; 64]);
        loop {
            let count = self.wire.read(&mut buffer).expect("the lab is there");
            if count == 0 {
                return ExitCode::FAILURE;
            }
            for &byte in &buffer[..count] {
                if let Some(Ok(Frame::Request(request))) = decoder.push_byte(byte)
                    && let Some(end) = self.answer(request)
                {
                    return end;
                }
            }
        }
    }

    fn send(&mut self, frame: &Frame<'_>) {
        let mut buffer = [0; MAX_FRAME_BYTES];
        self.wire.write_all(encode(frame, &mut buffer).expect("it fits")).expect("the lab is there");
    }

    fn console(&mut self, bytes: &[u8]) {
        self.send(&Frame::Stream(Stream::Console { name: "debian".into(), bytes: bytes.into() }));
    }

    fn answer(&mut self, Request { id, body }: Request) -> Option<ExitCode> {
        let is_subscription = matches!(body, RequestBody::Subscribe(_));
        let is_end = body == RequestBody::PowerOff && !self.behaviour.contains("stubborn");
        if matches!(body, RequestBody::VmMemory { .. }) && self.behaviour.contains("unresponsive") {
            return None;
        }
        let result = self.result(body);
        self.send(&Frame::Response(Response { id, result }));
        if is_end || (is_subscription && self.behaviour.contains("poweroff")) {
            return Some(ExitCode::SUCCESS);
        }
        if is_subscription && self.behaviour.contains("greet") {
            self.console(format!("{GREETING}\r\n").as_bytes());
            return Some(ExitCode::from(HostCode::Success.process_status() as u8));
        }
        None
    }

    fn result(&mut self, body: RequestBody) -> Result<ReplyBody, Refusal> {
        match body {
            RequestBody::Info => Ok(ReplyBody::Info(info())),
            RequestBody::VmList { .. } => Ok(ReplyBody::Vms { vms: vec![debian(self.ended)], next_index: None }),
            RequestBody::ConsoleInput { bytes, .. } => {
                self.console(&bytes.to_ascii_uppercase());
                Ok(ReplyBody::Done)
            }
            RequestBody::Log { from_sequence, .. } => {
                let records = (from_sequence..3).take(2).map(record).collect::<Vec<_>>();
                Ok(ReplyBody::Log { next_sequence: from_sequence + records.len() as u64, records })
            }
            RequestBody::Events { from_sequence, .. } => {
                let event = Event { sequence: 0, time_ns: 5, kind: EventKind::HostReady };
                let events = if from_sequence == 0 { vec![event] } else { vec![] };
                Ok(ReplyBody::Events { events, next_sequence: 1 })
            }
            RequestBody::Subscribe(wanted) if wanted.log => {
                self.sequence += 1;
                self.send(&Frame::Stream(Stream::Log(record(2 + self.sequence))));
                Ok(ReplyBody::Done)
            }
            RequestBody::VmShutdown { .. } if self.behaviour.contains("ignores") => Ok(ReplyBody::Done),
            RequestBody::VmShutdown { .. } => {
                self.ended = Some("powered off");
                Ok(ReplyBody::Done)
            }
            RequestBody::VmStop { .. } => {
                self.ended = Some("stopped by the operator");
                Ok(ReplyBody::Done)
            }
            RequestBody::VmStart { name } if name != "debian" => Err(Refusal {
                code: RefusalCode::UnknownVm,
                reason: format!("no machine {name:?}"),
                hint: String::new(),
            }),
            RequestBody::CpuList { from_index } => {
                let cpus: Vec<CpuInfo> = cpus().into_iter().skip(from_index as usize).take(2).collect();
                let next_index = (from_index == 0).then_some(2);
                Ok(ReplyBody::Cpus { cpus, next_index })
            }
            RequestBody::CpuOffline { index: 0 } => Err(Refusal {
                code: RefusalCode::WrongState,
                reason: "CPU 0 serves the control channel".to_owned(),
                hint: "it stays; take another one offline".to_owned(),
            }),
            RequestBody::VmHold { ms, .. } => {
                println!("held for {ms} ms");
                self.is_held = true;
                Ok(ReplyBody::Done)
            }
            RequestBody::VmResume { .. } if self.is_held => {
                println!("resumed");
                self.is_held = false;
                Ok(ReplyBody::Done)
            }
            RequestBody::VmLayout { .. } if self.is_held => {
                Ok(ReplyBody::Layout(vec![MemoryRange { gpa: 0, bytes: 1 << 20 }]))
            }
            RequestBody::VmLayout { .. } => Err(Refusal {
                code: RefusalCode::WrongState,
                reason: "debian does not stand still".to_owned(),
                hint: String::new(),
            }),
            RequestBody::VmRegisters { .. } => Ok(ReplyBody::Registers(Box::default())),
            RequestBody::VmMemory { from_gpa, to_gpa, .. } => {
                Ok(ReplyBody::Memory { gpa: from_gpa, bytes: Vec::new(), times: 1, next_gpa: to_gpa })
            }
            RequestBody::VmResume { .. } => Err(Refusal {
                code: RefusalCode::WrongState,
                reason: "debian runs already".to_owned(),
                hint: "pause it first".to_owned(),
            }),
            _ => Ok(ReplyBody::Done),
        }
    }
}

fn record(sequence: u64) -> LogRecord<'static> {
    let text = format!("record {sequence}").into();
    LogRecord { sequence, time_ns: sequence, cpu: 0, level: Level::Info, module: "boot".into(), text }
}

fn info() -> HostInfo {
    HostInfo {
        version: "9.9.9".to_owned(),
        image_bytes: 1 << 20,
        cpus: 2,
        memory_total_bytes: 2 << 30,
        memory_free_bytes: 1 << 30,
        host_overhead_bytes: 9 << 20,
        uptime_ns: 10_000_000_000,
        virtualization: Virtualization::Svm,
        features: vec!["nested-paging".to_owned()],
        apic_mode: ApicMode::X2Apic,
        tsc_hz: 1_000_000_000,
        generation: 1,
        build: "0123456789ab".to_owned(),
        security_version: 1,
        permits_downgrade: true,
        oldest_handover: handover::OLDEST_VERSION,
        newest_handover: handover::VERSION,
        trusted_keys: vec![],
        signer: None,
        unclaimed_nmis: 0,
        unexpected_interrupts: 0,
        last_unexpected_vector: None,
    }
}

fn cpus() -> Vec<CpuInfo> {
    let cpu = |index, state, busy_permille, vcpus: &[u32]| CpuInfo {
        index,
        apic_id: 2 * index,
        state,
        reason: (state == CpuState::Failed).then(|| "it did not come further than initialisation".to_owned()),
        busy_permille,
        vcpus: vcpus.iter().map(|&vcpu| CpuVcpu { vm: "debian".to_owned(), vcpu }).collect(),
    };
    vec![
        cpu(0, CpuState::Online, Some(215), &[0, 1]),
        cpu(1, CpuState::Leaving, Some(1000), &[]),
        cpu(2, CpuState::Offline, None, &[]),
        cpu(3, CpuState::Failed, None, &[]),
    ]
}

fn debian(ended: Option<&str>) -> VmInfo {
    VmInfo {
        name: "debian".to_owned(),
        state: if ended.is_some() { VmState::Stopped } else { VmState::Running },
        vcpus: 2,
        memory_bytes: 512 << 20,
        resident_bytes: None,
        cpus: vec![0, 1],
        throttled_since_ns: None,
        since_ns: 4_000_000_000,
        exits_total: 1234,
        exits: vec![ExitCount { kind: ExitKind::Cpuid, count: 1234 }],
        reason: ended.map(str::to_owned),
        console: wire::ConsoleOutput::default(),
    }
}
