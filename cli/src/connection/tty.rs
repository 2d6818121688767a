// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serial ports of this machine.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{
    ControlModes, OptionalActions, QueueSelector, Termios, ioctl_tiocexcl, ioctl_tiocnxcl, isatty, tcflush, tcgetattr,
    tcsetattr,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use super::line::{Keeper, Line};

/// The settings that a port had before, restored at the end: also when a signal ends this process.
struct Settings {
    port: OwnedFd,
    before: Termios,
    /// True if the command handles signals itself.
    are_signals_left: Arc<AtomicBool>,
    signals: Handle,
    /// The thread that waits for signals. It has the port open, too: the port is free for the next line once it has
    /// ended.
    watcher: Option<JoinHandle<()>>,
}

/// Opens a serial port for this process alone, without any processing of its bytes.
///
/// # Errors
/// It is not there, is no serial port, may not be opened, is in use, or does not take the rate.
pub(super) fn open(device: &Path, baud: u32) -> Result<Line> {
    // Without O_NONBLOCK, opening would wait for the other end's carrier.
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).write(true).custom_flags(flags).open(device);
    let file = file.map_err(|error| explained(device, error))?;
    if !file.metadata()?.file_type().is_char_device() || !isatty(&file) {
        bail!("{} is no serial port; name one, as /dev/ttyS0 or /dev/ttyUSB0", device.display());
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use(device)),
        Err(TryLockError::Error(error)) => return Err(error).context(format!("{} cannot be locked", device.display())),
    }
    ioctl_tiocexcl(&file).with_context(|| format!("{} cannot be taken for this process alone", device.display()))?;
    let before = tcgetattr(&file).with_context(|| format!("{} has no settings", device.display()))?;
    let port = file.try_clone()?.into();
    let settings = Settings::keep(port, before.clone())?;
    make_raw(&file, before, baud).with_context(|| {
        format!("{} does not take {baud} bits a second; the host's port has 115200", device.display())
    })?;
    // Bytes that came before answer no request of this process.
    tcflush(&file, QueueSelector::IOFlush)?;
    Ok(Line::over(file).with_baud(baud).kept_by(settings))
}

/// Eight bits, no parity, no flow control, no processing; the modem's lines are ignored.
fn make_raw(port: &File, mut settings: Termios, baud: u32) -> Result<()> {
    settings.make_raw();
    settings.control_modes.remove(ControlModes::CRTSCTS | ControlModes::CSTOPB | ControlModes::HUPCL);
    settings.control_modes.insert(ControlModes::CLOCAL | ControlModes::CREAD | ControlModes::CS8);
    settings.set_speed(baud)?;
    tcsetattr(port, OptionalActions::Now, &settings)?;
    // The driver takes what it can, and reports that as a success.
    let taken = tcgetattr(port)?.output_speed();
    if taken.abs_diff(baud) > baud / 50 {
        bail!("its driver would use {taken}");
    }
    Ok(())
}

fn explained(device: &Path, error: io::Error) -> anyhow::Error {
    let device = device.display();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => anyhow!("there is no device {device}; `ls /dev/serial/by-id /dev/ttyS*` lists some"),
        Some(Errno::NXIO | Errno::NODEV | Errno::IO) => {
            anyhow!("{device}: no serial port is behind it ({error}); `dmesg | grep tty` lists those there are")
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            anyhow!(
                "{device} may not be opened by you ({error}); join its group: `usermod -aG dialout USER`, then log in again"
            )
        }
        Some(Errno::BUSY) => in_use(Path::new(&device.to_string())),
        _ => anyhow!("{device} cannot be opened: {error}"),
    }
}

fn in_use(device: &Path) -> anyhow::Error {
    let device = device.display();
    anyhow!("{device} is in use by another process; `fuser {device}` names it, and a getty is to be disabled")
}

impl Settings {
    fn keep(port: OwnedFd, before: Termios) -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (handle, are_signals_left) = (signals.handle(), Arc::new(AtomicBool::new(false)));
        let (again, at_signal, are_left) = (port.try_clone()?, before.clone(), are_signals_left.clone());
        let watcher = thread::spawn(move || {
            for signal in signals.forever() {
                if !are_left.load(Ordering::Relaxed) {
                    let _ = tcsetattr(&again, OptionalActions::Now, &at_signal);
                    let _ = emulate_default_handler(signal);
                }
            }
        });
        Ok(Self { port, before, are_signals_left, signals: handle, watcher: Some(watcher) })
    }
}

impl Keeper for Settings {
    fn leave_signals(&self) {
        self.are_signals_left.store(true, Ordering::Relaxed);
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        self.signals.close();
        let _ = self.watcher.take().map(JoinHandle::join);
        // The last bytes leave at the rate that they were written for.
        let _ = tcsetattr(&self.port, OptionalActions::Drain, &self.before);
        let _ = ioctl_tiocnxcl(&self.port);
    }
}
