// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual functions of an NVMe controller (SR-IOV). Each is a secondary controller, which has neither queues nor
//! interrupts and is offline until the primary one gives it some (NVM Express Base Specification, revision 2.0,
//! sections 5.25 and 8.26). Linux's driver leaves that to user space.

use crate::log;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The controller of the primary function, and its function's folder.
const CONTROLLER: &str = "/dev/nvme0";
const FUNCTION: &str = "/sys/class/nvme/nvme0/device";
/// Longest wait for the controller, and for a secondary one: the function is enabled in the host's own time.
const LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The Virtualization Management command, and its actions.
const VIRTUALIZATION_MANAGEMENT: u8 = 0x1c;
const PRIMARY_ALLOCATION: u32 = 1;
const SECONDARY_ASSIGNMENT: u32 = 8;
const SECONDARY_ONLINE: u32 = 9;
/// Kinds of resources, and how many of each a secondary controller gets: an admin queue and one for I/O, an interrupt.
const QUEUES: u32 = 0;
const INTERRUPTS: u32 = 1;
const QUEUES_EACH: u32 = 2;
const INTERRUPTS_EACH: u32 = 1;

/// `struct nvme_passthru_cmd` of Linux (`include/uapi/linux/nvme_ioctl.h`).
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_and_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    words_10_to_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// Enables so many virtual functions, gives each its resources, and has it online.
pub fn enable(number: u32) {
    match try_enable(number) {
        Ok(()) => log!("nvme-sriov: {number} online"),
        Err(error) => log!("nvme-sriov: WRONG: {error}"),
    }
}

fn try_enable(number: u32) -> Result<(), String> {
    let controller = controller()?;
    // The primary controller has all of them first, and gives them up in its next reset.
    for kind in [INTERRUPTS, QUEUES] {
        manage(&controller, PRIMARY_ALLOCATION, kind, 0, 0).map_err(|error| format!("allocation: {error}"))?;
    }
    drop(controller);
    write("reset", "1")?;
    let controller = self::controller()?;
    write("sriov_drivers_autoprobe", "0")?;
    write("sriov_numvfs", &number.to_string())?;
    for secondary in 1..=number {
        bring_online(&controller, secondary).map_err(|error| format!("secondary controller {secondary}: {error}"))?;
    }
    Ok(())
}

/// The host enables a function some time after its driver has asked for it.
fn bring_online(controller: &File, secondary: u32) -> Result<(), String> {
    let end = Instant::now() + LIMIT;
    loop {
        let assign = |kind, count| manage(controller, SECONDARY_ASSIGNMENT, kind, secondary, count);
        let done = assign(INTERRUPTS, INTERRUPTS_EACH)
            .and_then(|()| assign(QUEUES, QUEUES_EACH))
            .and_then(|()| manage(controller, SECONDARY_ONLINE, 0, secondary, 0));
        match done {
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => sleep(POLL_INTERVAL),
            Ok(()) => return Ok(()),
        }
    }
}

/// Opens the controller once its driver has started it.
fn controller() -> Result<File, String> {
    let end = Instant::now() + LIMIT;
    let is_live = || fs::read_to_string("/sys/class/nvme/nvme0/state").is_ok_and(|state| state.trim() == "live");
    while !(is_live() && Path::new(CONTROLLER).exists()) {
        if Instant::now() > end {
            return Err(format!("{CONTROLLER} does not become live"));
        }
        sleep(POLL_INTERVAL);
    }
    File::options().read(true).write(true).open(CONTROLLER).map_err(|error| format!("{CONTROLLER}: {error}"))
}

fn write(attribute: &str, value: &str) -> Result<(), String> {
    fs::write(Path::new(FUNCTION).join(attribute), value).map_err(|error| format!("{attribute}: {error}"))
}

fn manage(controller: &File, action: u32, kind: u32, secondary: u32, count: u32) -> Result<(), String> {
    let mut command = Command { opcode: VIRTUALIZATION_MANAGEMENT, ..Command::default() };
    command.words_10_to_15[0] = action | kind << 8 | secondary << 16;
    command.words_10_to_15[1] = count;
    match submit(controller, command) {
        Ok(0) => Ok(()),
        Ok(status) => Err(format!("action {action} of resource {kind}: status {status:#x}")),
        Err(error) => Err(format!("action {action} of resource {kind}: {error}")),
    }
}

/// `NVME_IOCTL_ADMIN_CMD`. Its result is the command's status.
struct Admin(Command);

// SAFETY: the opcode is of this structure, which the kernel reads and writes; the command has no other memory.
#[expect(unsafe_code, reason = "the kernel has no other way to send a controller a command")]
unsafe impl Ioctl for Admin {
    type Output = IoctlOutput;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Command>(b'N', 0x41)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> rustix::io::Result<Self::Output> {
        Ok(output)
    }
}

#[expect(unsafe_code, reason = "the kernel has no other way to send a controller a command")]
fn submit(controller: &File, command: Command) -> io::Result<IoctlOutput> {
    // SAFETY: the file is an NVMe controller's, whose driver knows the opcode.
    let status = unsafe { ioctl(controller, Admin(command)) };
    status.map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_kernels_size() {
        assert_eq!(size_of::<Command>(), 72);
    }
}
