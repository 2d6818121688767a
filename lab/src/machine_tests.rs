// SPDX-License-Identifier: MIT OR Apache-2.0
use baton::config::Iommu;

use super::*;

fn machine(cpus: u32, hardware: Hardware) -> Machine {
    Machine {
        emulator: Emulator::Bochs(Bochs::default()),
        cpus,
        memory: Size::mebibytes(512),
        image: "baton.elf".into(),
        bundle: None,
        disc: None,
        cmdline: String::new(),
        hardware,
        extra: Vec::new(),
    }
}

/// The arguments by which QEMU is started.
fn arguments(machine: &Machine, accelerator: Accelerator) -> String {
    let command = machine.qemu_command(Path::new("qemu"), accelerator, Path::new("/run/a,b.sock"));
    command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_command_line_is_the_machines() {
    let machine = Machine {
        bundle: Some("a.cpio".into()),
        cmdline: "log=debug smp=serial".into(),
        extra: vec!["-icount".into(), "shift=0".into()],
        ..machine(2, Hardware::default())
    };
    assert_eq!(
        arguments(&machine, Accelerator::Tcg),
        "-nodefaults -no-user-config -display none -no-reboot -machine q35 -accel tcg -cpu max -smp 2 \
         -m 512M -kernel baton.elf -append log=debug smp=serial -initrd a.cpio -chardev \
         stdio,id=log,signal=off -serial chardev:log -chardev socket,id=control,path=/run/a,,b.sock -serial \
         chardev:control -device isa-debug-exit,iobase=0xf4,iosize=4 -icount shift=0"
    );
}

#[test]
fn an_iommu_takes_the_io_apic_out_of_kvm() {
    let hardware = Hardware::place(Iommu::Amd, &[], Path::new("qemu"), Path::new("run")).expect("possible");
    let arguments = |accelerator| arguments(&machine(1, hardware.clone()), accelerator);
    assert!(arguments(Accelerator::Kvm).contains("q35,kernel-irqchip=split"), "{}", arguments(Accelerator::Kvm));
    assert!(arguments(Accelerator::Tcg).contains("q35 "), "{}", arguments(Accelerator::Tcg));
}

#[test]
fn bochs_is_not_started_with_a_command_alone() {
    let refused = machine(1, Hardware::default()).command(Path::new("/run/a.sock"));
    assert!(refused.expect_err("files, too").to_string().contains("only QEMU"));
}

#[test]
fn one_thread_may_run_all_cpus() {
    let arguments = arguments(&machine(4, Hardware::default()), Accelerator::TcgSingle);
    assert!(arguments.contains(" -accel tcg,thread=single -cpu max -smp 4 "), "{arguments}");
}
