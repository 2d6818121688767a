// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab with the real emulator: a tiny Multiboot kernel prints on COM1, echoes one byte of COM2 and ends as a test
//! demands.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use baton::size::Size;
use lab::{Accelerator, Emulator, Ending, Hardware, Lab, Machine, RunDir, What, default_qemu};
use tempfile::TempDir;
use wire::exit_code::ExitCode;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Load address of the kernel.
const BASE: u32 = 0x10_0000;
/// Bytes of the Multiboot header with its address fields (Multiboot 0.6.96, section 3.1.1).
const HEADER_BYTES: u32 = 32;

/// A kernel that prints `text`, then runs `end`.
fn kernel(text: &str, end: &[u8]) -> Vec<u8> {
    let print = [
        0xac, // lodsb
        0x84, 0xc0, // test al, al
        0x74, 0x07, // jz behind the loop
        0x66, 0xba, 0xf8, 0x03, // mov dx, COM1
        0xee, // out dx, al
        0xeb, 0xf4, // jmp to the loop's begin
    ];
    let code_bytes = 5 + print.len() + end.len();
    let text_at = BASE + HEADER_BYTES + code_bytes as u32;
    let load = [&[0xbe][..], &text_at.to_le_bytes(), &print, end].concat(); // mov esi, text
    let (magic, flags) = (0x1bad_b002_u32, 0x1_0000_u32);
    let end_of_load = text_at + text.len() as u32 + 1;
    let checksum = 0_u32.wrapping_sub(magic).wrapping_sub(flags);
    let header = [magic, flags, checksum, BASE, BASE, end_of_load, end_of_load, BASE + HEADER_BYTES];
    let header: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
    [&header[..], &load, text.as_bytes(), &[0]].concat()
}

/// Ends through the debug-exit port.
fn exit_with(code: ExitCode) -> Vec<u8> {
    let mut end = vec![0x66, 0xba, 0xf4, 0x00, 0xb8]; // mov dx, 0xf4; mov eax, …
    end.extend(code.port_value().to_le_bytes());
    end.extend([0xef, 0xf4]); // out dx, eax; hlt
    end
}

/// Spins for ever.
const HANG: [u8; 2] = [0xeb, 0xfe];

fn machine(image: PathBuf) -> Machine {
    Machine {
        emulator: Emulator::Qemu { program: default_qemu(None), accelerator: Accelerator::Tcg },
        cpus: 1,
        memory: Size::mebibytes(64),
        image,
        bundle: None,
        disc: None,
        cmdline: String::new(),
        hardware: Hardware::default(),
        extra: Vec::new(),
    }
}

fn start(kernel: &[u8]) -> (TempDir, Lab) {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("kernel,with a comma");
    fs::write(&image, kernel).expect("written");
    let dir = RunDir::take_at(&folder.path().join("run")).expect("free");
    let lab = Lab::start(&machine(image), dir).expect("started");
    (folder, lab)
}

#[test]
fn lines_come_with_their_times_and_the_end_with_its_meaning() {
    for (code, ending) in [
        (ExitCode::Success, Ending::Success),
        (ExitCode::Failed, Ending::Failed),
        (ExitCode::Panicked, Ending::Panicked),
    ] {
        let (_folder, mut lab) = start(&kernel("one\r\ntwo\n", &exit_with(code)));
        let happenings = lab.wait_for(TIMEOUT, |what| matches!(what, What::Ended(_))).expect("it ends");
        let whats: Vec<_> = happenings.iter().map(|happening| happening.what.clone()).collect();
        let line = |text: &str| What::HostLine(text.to_owned());
        assert_eq!(whats, [line("one"), line("two"), What::Ended(ending)]);
        assert!(happenings.is_sorted_by_key(|happening| happening.at));
        assert_eq!(lab.next(Duration::ZERO), None);
    }
}

#[test]
fn a_machine_that_hangs_is_ended() {
    let (_folder, mut lab) = start(&kernel("here\n", &HANG));
    lab.wait_for(TIMEOUT, |what| *what == What::HostLine("here".to_owned())).expect("it prints");
    assert!(lab.wait_for(Duration::from_millis(200), |what| matches!(what, What::Ended(_))).is_err());
    lab.kill();
    let end = lab.wait_for(TIMEOUT, |what| matches!(what, What::Ended(_))).expect("it ends");
    assert_eq!(end.last().map(|happening| happening.what.clone()), Some(What::Ended(Ending::Killed { signal: 9 })));
}

#[test]
fn noise_of_a_host_that_does_not_speak_the_protocol_is_survived() {
    // Reads COM2 until a byte comes (our greeting begins with 0), writes it back, and ends.
    let mut end = vec![0x66, 0xba, 0xfd, 0x02]; // mov dx, COM2's line status
    end.extend([0xec, 0xa8, 0x01, 0x74, 0xfb]); // wait: in al, dx; test al, 1; jz wait
    end.extend([0x66, 0xba, 0xf8, 0x02, 0xec, 0xee]); // mov dx, COM2; in al, dx; out dx, al
    end.extend(exit_with(ExitCode::Success));
    let (_folder, mut lab) = start(&kernel("", &end));
    let happenings = lab.wait_for(TIMEOUT, |what| matches!(what, What::Ended(_))).expect("it ends");
    assert_eq!(happenings.last().map(|happening| happening.what.clone()), Some(What::Ended(Ending::Success)));
}

#[test]
fn a_file_that_is_no_kernel_is_refused_with_the_emulators_words() {
    let (_folder, mut lab) = start(b"no kernel");
    let happenings = lab.wait_for(TIMEOUT, |what| matches!(what, What::Ended(_))).expect("it ends");
    let Some(What::Ended(ending)) = happenings.last().map(|happening| &happening.what) else { panic!("it ended") };
    assert!(!ending.is_good() && ending.to_string().contains("kernel"), "{ending}");
}

#[test]
fn a_machine_that_cannot_be_is_refused_with_the_emulators_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = RunDir::take_at(&folder.path().join("run")).expect("free");
    let impossible = Machine { extra: vec!["-abacus".into()], ..machine("none".into()) };
    let Err(error) = Lab::start(&impossible, dir).map(drop) else { panic!("it cannot start") };
    let message = error.to_string();
    assert!(message.starts_with("the emulator ended before the machine started"), "{message}");
    assert!(message.contains("-abacus: invalid option"), "{message}");
}
