// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/init` of a stock Linux host: loads KVM, starts one guest, and logs when that has executed its first instruction.
//!
//! It is the least that a virtualization host of Linux does before its first guest runs: no devices, no firmware, no
//! user space but this program. The guest's first instruction writes a port, which no device of KVM's has, so that
//! KVM_RUN returns with it.

#![allow(unsafe_code, reason = "KVM is given memory by its address")]

use std::error::Error;
use std::fs::{self, File};

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd, VmFd};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot, uname};

/// In the order in which they need each other.
const MODULES: [&str; 3] = ["irqbypass", "kvm", "kvm-amd"];
/// As much as the guest has that Baton starts in the same bench.
const MEMORY_BYTES: usize = 4 << 20;
const PAGE_BYTES: usize = 4096;
/// Address of the guest's code: `out 0xf4, al`.
const CODE_AT: usize = 0x1000;
const CODE: [u8; 2] = [0xe6, PORT];
const PORT: u8 = 0xf4;

/// Memory as KVM wants it: whole pages.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

fn main() {
    let said = match first_guest() {
        Ok(()) => "first-guest: executed its first instruction".to_owned(),
        Err(error) => format!("first-guest: no guest runs: {error}"),
    };
    // The kernel's log gives the line its time.
    if fs::write("/dev/kmsg", format!("<1>{said}\n")).is_err() {
        println!("{said}");
    }
    let _ = reboot(RebootCommand::PowerOff);
}

fn first_guest() -> Result<(), Box<dyn Error>> {
    // An initramfs may have it mounted already.
    let _ = mount("devtmpfs", "/dev", "devtmpfs", MountFlags::empty(), None::<&std::ffi::CStr>);
    load_modules()?;
    let kvm = Kvm::new().map_err(|error| format!("/dev/kvm: {error}"))?;
    let vm = kvm.create_vm()?;
    give_memory(&vm)?;
    let mut vcpu = vm.create_vcpu(0)?;
    set_entry(&vcpu)?;
    match vcpu.run()? {
        VcpuExit::IoOut(port, _) if port == u16::from(PORT) => Ok(()),
        other => Err(format!("its first exit was {other:?}").into()),
    }
}

fn load_modules() -> Result<(), Box<dyn Error>> {
    let release = uname().release().to_string_lossy().into_owned();
    for name in MODULES {
        let path = format!("/lib/modules/{release}/{name}.ko");
        let file = File::open(&path).map_err(|error| format!("{path}: {error}"))?;
        finit_module(&file, c"", 0).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn give_memory(vm: &VmFd) -> Result<(), Box<dyn Error>> {
    let mut pages = vec![Page([0; PAGE_BYTES]); MEMORY_BYTES / PAGE_BYTES];
    pages[CODE_AT / PAGE_BYTES].0[..CODE.len()].copy_from_slice(&CODE);
    let memory: &'static mut [Page] = pages.leak();
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: MEMORY_BYTES as u64,
        userspace_addr: memory.as_mut_ptr() as u64,
    };
    // SAFETY: the memory was leaked, so it is there for as long as the guest, and nothing here refers to it from now
    // on.
    unsafe { vm.set_user_memory_region(region)? };
    Ok(())
}

/// Real mode, as after a reset, but at [`CODE_AT`].
fn set_entry(vcpu: &VcpuFd) -> Result<(), Box<dyn Error>> {
    let mut segments = vcpu.get_sregs()?;
    (segments.cs.base, segments.cs.selector) = (0, 0);
    vcpu.set_sregs(&segments)?;
    let mut registers = vcpu.get_regs()?;
    (registers.rip, registers.rflags) = (CODE_AT as u64, 2);
    Ok(vcpu.set_regs(&registers)?)
}
