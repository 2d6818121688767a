// SPDX-License-Identifier: MIT OR Apache-2.0
use baton::size::Size;

use super::super::Emulator;
use super::*;

fn machine() -> Machine {
    Machine {
        emulator: Emulator::Bochs(Bochs::default()),
        cpus: 2,
        memory: Size::mebibytes(512),
        image: "baton.elf".into(),
        bundle: Some("bundle".into()),
        disc: None,
        cmdline: String::new(),
        hardware: Hardware::default(),
        extra: Vec::new(),
    }
}

#[test]
fn the_configuration_is_the_machines() {
    let bochs = Bochs { model: "tigerlake".to_owned(), ..Bochs::default() };
    let text = bochs.configuration(&machine(), Path::new("/run/a b.iso"), (4711, 4712)).expect("possible");
    for line in [
        "memory: guest=512, host=512",
        "cpu: model=tigerlake, count=2, ips=100000000, reset_on_triple_fault=0",
        "ata0-master: type=cdrom, path=\"/run/a b.iso\", status=inserted",
        "com1: enabled=1, mode=socket-client, dev=\"localhost:4711\"",
        "com2: enabled=1, mode=socket-client, dev=\"localhost:4712\"",
        "log: -",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn a_path_that_bochs_cannot_be_given_is_refused() {
    let refused = Bochs::default().configuration(&machine(), Path::new("/run/a\"b.iso"), (1, 2));
    assert!(refused.expect_err("a quote").to_string().contains("has a quote"));
}

#[test]
fn arguments_of_qemu_are_refused() {
    let machine = Machine { extra: vec!["-icount".into()], ..machine() };
    assert!(check(&machine).expect_err("none of Bochs's").to_string().contains("\"-icount\""));
}

#[test]
fn errors_of_bochs_are_distinguished_from_events() {
    for wrong in [
        "00465782566e[CPU0  ] VMRUN: Guest EFER.SVME = 0",
        "01004511961e[CPU0  ] VMFAIL: VMCS EXEC CTRL: VMX pin-based controls allowed 0-settings",
        "00465782566p[      ] >>PANIC<< a disc that is not there",
        "Bochs: some library is missing",
        "short",
        POWER_OFF,
    ] {
        assert!(is_worth_keeping(wrong), "{wrong}");
    }
    for usual in [
        "00465782566e[CPU0  ] SVM VMEXIT: I/O port 0x03fd",
        "01004511961e[CPU0  ] VMEXIT: EPT violation for guest paddr 0x0000fee00020 laddr 0xffffffffff5fd020",
        "00438016827e[CPU0  ] RDMSR: Unknown register 0x8b",
        "00000000000i[PLUGIN] loaded plugin libbx_serial.so",
        "02276671915p[ACPI  ] >>PANIC<< ACPI control: soft power off",
        "========================================================================",
    ] {
        assert!(!is_worth_keeping(usual), "{usual}");
    }
}
