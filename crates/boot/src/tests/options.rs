// SPDX-License-Identifier: MIT OR Apache-2.0
use klog::Level;
use proptest::prelude::*;
use std::format;
use std::string::{String, ToString};

use super::*;
use crate::options::{
    ApicMode, Console, CpuList, FramePolicy, GuestStart, HugeFrames, KickTime, LogBuffer, MAXIMUM_COMPLAINTS,
    Measurement, NUMBERS, PanicAction, Smp, Transmit, TscSync, UpdateLimit,
};

fn complaints(line: &str) -> Vec<String> {
    Options::parse(line).1.kept().iter().map(ToString::to_string).collect()
}

#[test]
fn every_option_is_read_into_its_type() {
    let line = " log=trace log-buffer=128,8 console=ttyS0,9600n8 apic=x2apic panic=reboot:10\tcpus=3 cpu=0-1,9 \
                smp=serial kick=late tsc=measure verify=sha256 frames=eager hvo=off huge-frames=2M:3,1G:500 \
                bad-memory=0x1fff,0x3000-0x4000 pci=allow:00:02.0 pmu=hardware mitigations=off smt=on vpmu=reprogram \
                update-limit=40 guests=none restart-after-guests=7 measure=log-storm,log\n";
    let (options, complaints) = Options::parse(line);
    let expected = Options {
        log: Level::Trace,
        log_buffer: LogBuffer { boot_kib: 128, other_kib: 8 },
        console: Console::Serial { baud: 9600, transmit: Transmit::Fifo },
        apic: ApicMode::X2Apic,
        panic: PanicAction::Reboot { after_seconds: 10 },
        cpus: Some(3),
        cpu: "0,1,9".parse().ok(),
        smp: Smp::Serial,
        kick: KickTime::Late,
        tsc: TscSync::Measure,
        verify: seal::Verify::Sha256,
        frames: FramePolicy::Eager,
        hvo: false,
        huge_frames: HugeFrames { gib1: 500, mib2: 3 },
        bad_memory: "0x1000-0x1fff,0x3001-0x4fff".parse().unwrap_or_default(),
        pmu: pmu::Choice::Hardware,
        mitigations: mitigations::Mode::Off,
        smt: mitigations::Smt::On,
        vpmu: pmu::Policy::Reprogram,
        pci: pci::Filter::Allow([pci::Pattern::Place("00:02.0".parse().expect("a place"))].into_iter().collect()),
        update_limit: UpdateLimit::Milliseconds(40),
        guests: GuestStart::None,
        restart_after_guests: 7,
        measurements: [Measurement::LogStorm, Measurement::Log].into_iter().collect(),
    };
    assert_eq!(options, expected);
    assert_eq!(complaints.kept().len(), 0);
}

/// The documentation's table; a change to it is a change for operators.
#[test]
fn the_options_are_these() {
    let table: Vec<_> = OPTIONS.iter().map(|option| (option.name, option.accepted, option.default)).collect();
    let expected = [
        ("log", "error, warn, info, debug or trace", "info"),
        ("log-buffer", "<KiB> or <KiB of the boot CPU>,<KiB of each other>, from 4 to 16384", "64,16"),
        (
            "console",
            "ttyS0[,<baud>[n8]][,byte or ,fifo] with a baud that divides 115200; byte, fifo, or none",
            "ttyS0,115200n8,fifo",
        ),
        ("apic", "auto, xapic or x2apic", "auto"),
        ("panic", "spin, halt, reboot:<seconds up to 3600> or exit", "halt"),
        ("cpus", "all or a number from 1 to 1024", "all"),
        ("cpu", "all, or numbers from 0 to 1023 and rising ranges of them, joined by commas: 0-3,8", "all"),
        ("smp", "serial, parallel or park", "park"),
        ("kick", "early or late", "early"),
        ("tsc", "auto, skip or measure", "auto"),
        ("verify", "sha256, early or none", "early"),
        ("frames", "eager, deferred or extents", "extents"),
        ("hvo", "on or off", "on"),
        ("huge-frames", "none, or 1G:<number> and 2M:<number>, joined by a comma, up to 1048576 of each", "none"),
        (
            "bad-memory",
            "none, or up to 8 addresses 0x<hexadecimal> and ranges of them, last address included, joined by commas",
            "none",
        ),
        (
            "pci",
            "all, lazy, or allow: and up to 16 of a place 00:1f.3, vendor:device 8086:100e or 8086:*, class:02 or \
             class:0200, joined by commas",
            "lazy",
        ),
        ("pmu", "soft or hardware", "soft"),
        ("mitigations", "auto or off", "auto"),
        ("smt", "auto, on or off", "auto"),
        ("vpmu", "reprogram or direct", "direct"),
        ("update-limit", "auto or milliseconds from 1 to 10000", "auto"),
        ("guests", "auto or none", "auto"),
        ("restart-after-guests", "a number from 1 to 1000000", "1"),
        ("measure", "none, or log, hash and log-storm, joined by commas", "none"),
    ];
    assert_eq!(table, expected);
}

#[test]
fn defaults_and_examples_are_accepted_and_defaults_change_nothing() {
    for option in OPTIONS {
        let line = format!("{}={}", option.name, option.default);
        assert_eq!(Options::parse(&line).0, Options::default(), "{line}");
        for value in option.examples.iter().chain([&option.default]) {
            assert_eq!(complaints(&format!("{}={value}", option.name)), Vec::<String>::new());
        }
        assert!(!option.what.is_empty());
    }
}

#[test]
fn an_update_has_more_time_above_an_emulator_unless_the_operator_sets_it() {
    assert_eq!([false, true].map(|is_virtual| UpdateLimit::Auto.us(is_virtual)), [5_000, 2_000_000]);
    assert_eq!([false, true].map(|is_virtual| UpdateLimit::Milliseconds(7).us(is_virtual)), [7_000; 2]);
}

#[test]
fn a_console_is_a_port_a_rate_and_a_policy_each_of_which_may_be_left_out() {
    let console = |value: &str| Options::parse(&format!("console={value}")).0.console;
    let serial = |baud, transmit| Console::Serial { baud, transmit };
    assert_eq!(console("byte"), serial(115_200, Transmit::Byte));
    assert_eq!(console("fifo"), serial(115_200, Transmit::Fifo));
    assert_eq!(console("ttyS0,byte"), serial(115_200, Transmit::Byte));
    assert_eq!(console("ttyS0,9600n8,byte"), serial(9600, Transmit::Byte));
    assert_eq!(console("ttyS0,19200"), serial(19_200, Transmit::Fifo));
    assert_eq!(console("none"), Console::None);
}

#[test]
fn a_wrong_value_names_the_option_the_value_and_what_is_accepted() {
    let (options, _) = Options::parse("panic=explode cpus=2");
    assert_eq!((options.panic, options.cpus), (PanicAction::Halt, Some(2)), "parsing goes on");
    let expected = "option panic=explode is ignored: panic takes spin, halt, reboot:<seconds up to 3600> or exit";
    assert_eq!(complaints("panic=explode"), [expected]);
    let expected = "option cpus is ignored, it lacks its value: cpus= takes all or a number from 1 to 1024";
    assert_eq!(complaints("cpus"), [expected]);
}

#[test]
fn values_on_the_edge_are_refused() {
    for word in [
        "update-limit=0",
        "update-limit=10001",
        "cpus=0",
        "cpus=1025",
        "cpus=+1",
        "cpus=",
        "cpus=99999999999999999999",
        "cpu=",
        "cpu=,",
        "cpu=0,",
        "cpu=3-1",
        "cpu=1-",
        "cpu=-1",
        "cpu=0-1-2",
        "cpu=1024",
        "cpu=0-1024",
        "cpu=+1",
        "cpu=0..3",
        "cpu=99999999999999999999",
        "log=INFO",
        "console=ttyS1",
        "console=ttyS0,",
        "console=ttyS0,0",
        "console=ttyS0,7",
        "console=ttyS0,115200o7",
        "console=none,9600",
        "console=none,fifo",
        "console=ttyS0byte",
        "console=byte,fifo",
        "console=ttyS0,fifo,9600",
        "panic=reboot",
        "panic=reboot:",
        "panic=reboot:3601",
        "apic=",
        "smp=Parallel",
        "smp=",
        "tsc=off",
        "pci=",
        "pci=some",
        "pci=allow",
        "pci=allow:",
        "pci=allow:00:1f.3,",
        "pci=allow:00:20.0",
        "guests=some",
        "pmu=amd",
        "measure=",
        "measure=log,",
        "measure=panic",
        "measure=log,log,log,log",
    ] {
        let (options, complaints) = Options::parse(word);
        assert!(matches!(complaints.kept(), [Complaint::Malformed { .. }]), "{word}");
        assert_eq!(options, Options::default(), "{word}");
    }
}

#[test]
fn an_unknown_option_gets_the_nearest_name() {
    for (word, nearest) in [
        ("pnic=halt", Some("panic")),
        ("cpuz=4", Some("cpu")),
        ("cpuss=4", Some("cpus")),
        ("LOG=info", Some("log")),
        ("consol=ttyS0", Some("console")),
        ("quiet", None),
        ("=", None),
        ("BOOT_IMAGE=/boot/baton-with-a-long-name.elf", None),
    ] {
        let found = Options::parse(word).1;
        let [Complaint::Unknown { nearest: found, .. }] = found.kept() else { panic!("{word}") };
        assert_eq!(*found, nearest, "{word}");
    }
    assert_eq!(complaints("pnic=halt"), ["option pnic=halt is unknown and ignored: did you mean panic?"]);
    let expected = "option quiet is unknown and ignored: there are log, log-buffer, console, apic, panic, cpus, cpu, \
                    smp, kick, tsc, verify, frames, hvo, huge-frames, bad-memory, pci, pmu, mitigations, smt, vpmu, \
                    update-limit, guests, restart-after-guests, measure";
    assert_eq!(complaints("quiet"), [expected]);
}

#[test]
fn a_list_of_cpus_holds_its_numbers_and_no_others() {
    let list: CpuList = "8,0-3,2,1023".parse().expect("a list");
    assert_eq!(list.numbers().collect::<Vec<_>>(), [0, 1, 2, 3, 8, 1023]);
    assert!(list.contains(8) && !list.contains(4) && !list.contains(1024) && !list.contains(u32::MAX));
    let whole: CpuList = "0-1023".parse().expect("a list");
    assert_eq!(whole.numbers().count(), NUMBERS as usize);
}

#[test]
fn a_wrong_list_names_the_form_of_a_right_one() {
    let expected = "option cpu=3-1 is ignored: cpu takes all, or numbers from 0 to 1023 and rising ranges of them, \
                    joined by commas: 0-3,8";
    assert_eq!(complaints("cpu=3-1"), [expected]);
}

#[test]
fn an_option_given_twice_counts_as_given_last() {
    assert_eq!(Options::parse("cpus=2 cpus=all").0.cpus, None);
    assert_eq!(Options::parse("cpus=2 cpus=many").0.cpus, Some(2), "unless the last is wrong");
}

#[test]
fn complaints_are_bounded_and_counted() {
    let line = "x ".repeat(MAXIMUM_COMPLAINTS + 3);
    let complaints = Options::parse(&line).1;
    assert_eq!((complaints.kept().len(), complaints.more()), (MAXIMUM_COMPLAINTS, 3));
}

proptest! {
    #[test]
    fn no_line_whatever_panics_and_each_bad_word_is_reported(line in "((log|cpus|cpu|panic|selftest|é|[a-z]{1,30})(=[a-z0-9:,é-]{0,6})? ?){0,20}") {
        let (_, complaints) = Options::parse(&line);
        prop_assert!(complaints.kept().len() + complaints.more() <= line.split_ascii_whitespace().count());
        let (options, _, fewer) = Options::parse_with_self_tests(&line);
        prop_assert!(fewer.kept().len() + fewer.more() <= complaints.kept().len() + complaints.more());
        prop_assert_eq!(options, Options::parse(&line).0);
        complaints.kept().iter().for_each(|complaint| assert!(complaint.to_string().contains("ignored")));
    }
}

#[test]
fn bad_memory_is_whole_frames_and_nothing_outside_memory() {
    let bad = |value: &str| value.parse::<crate::options::BadMemory>().ok().map(|bad| bad.ranges().collect::<Vec<_>>());
    let range = |start, end| PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap();
    assert_eq!(bad("0x12345678"), Some(std::vec![range(0x1234_5000, 0x1234_6000)]));
    assert_eq!(bad("0x1000-0x2fff,0x5000"), Some(std::vec![range(0x1000, 0x3000), range(0x5000, 0x6000)]));
    assert_eq!(bad("0xfffffffffffff"), Some(std::vec![range(0xf_ffff_ffff_f000, 1 << 52)]));
    for value in ["", "4096", "0x", "0x2000-0x1000", "0x10000000000000", "0x1g", "0x1,", "0x+1", "0x1-0x2-0x3"] {
        assert_eq!(bad(value), None, "{value}");
    }
    assert_eq!(bad("0x1,0x1,0x1,0x1,0x1,0x1,0x1,0x1,0x1"), None);
}

#[test]
fn huge_frames_have_one_of_two_sizes() {
    let huge = |value: &str| value.parse::<HugeFrames>().ok();
    assert_eq!(huge("1G:1048576"), Some(HugeFrames { gib1: 1 << 20, mib2: 0 }));
    for value in ["", "1G", "1G:", "4K:1", "1G:1048577", "1G:-1", "500", "1G:1,"] {
        assert_eq!(huge(value), None, "{value}");
    }
}
