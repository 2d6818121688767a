// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image from a guest. The tool itself, in stock Linux, sends it to the host over virtio-vsock, and prints the time
//! that this took by the guest's clock: the emulator's own time, in which an instruction of the machine's only CPU
//! takes one nanosecond, be it the client's, the guest's kernel's or the host's. By the wall clock the same upload
//! takes two to twenty times as long.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::drivers::Drivers;
use baton::size::Size;
use bundle::{ControlRights, ControlRole, GuestControl, VsockConfig};
use lab::{What, inside};

use super::super::report::{Figure, Report};
use super::super::setup::{COUNT_INSTRUCTIONS, HostSetup, guest, temporary_folder};
use super::Context;

const NAME: &str = "services";
const CID: u32 = 3;
const DRIVERS: &[&str] = &["virtio_pci", "vmw_vsock_virtio_transport"];
/// The guest's memory has its files twice while it starts.
const GUEST_MEMORY: Size = Size::mebibytes(384);
const MEMORY: Size = Size::mebibytes(1024);
/// The beginning of the tool's line with the time.
const SENT: &str = "sent ";

pub(super) fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("operating: an image is sent from a guest");
    let mebibytes = fs::metadata(&context.image)?.len() as f64 / f64::from(1 << 20);
    let seconds: Vec<f64> = seconds(context)?.into_iter().map(|seconds| seconds / mebibytes).collect();
    let value = report.figure(Figure::measured("icount, from a guest", "upload_vsock_s_per_mib", "s", seconds))?;
    report.goal("upload_vsock_s_per_mib", value)
}

/// Returns the times of all runs, on one machine.
fn seconds(context: &Context) -> Result<Vec<f64>> {
    let folder = temporary_folder()?;
    let guests = vec![client(context, folder.path())?];
    let extra = COUNT_INSTRUCTIONS.map(Into::into).to_vec();
    let mut host = HostSetup { guests, extra, ..HostSetup::new(MEMORY) }.start(context)?;
    let mut console = String::new();
    host.wait(context.timeout, "uploads", |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        console.contains("script: done").then_some(())
    })?;
    let times: Vec<f64> = console.lines().filter_map(|line| time_in(line.trim_end())).collect();
    ensure!(times.len() == context.runs, "{} of {} uploads: the guest printed\n{console}", times.len(), context.runs);
    Ok(times)
}

/// A guest that may update its host, and rehearses that with its image, once for each run.
fn client(context: &Context, folder: &Path) -> Result<Guest> {
    let kernel = context.made("target/kernels/default/vmlinuz")?;
    let archive = folder.join("client.cpio");
    let script = format!(
        "export BATON_CONNECT=vsock:2\nfor run in $(seq {}); do baton update --image /image --dry-run; done",
        context.runs
    );
    let content = [
        Drivers::of(kernel.parent().unwrap_or(&kernel))?.archive(DRIVERS)?,
        inside::script(&script, &[("image", &context.image)])?,
        inside::program("baton", &std::env::current_exe()?, folder)?,
    ];
    fs::write(&archive, content.concat()).with_context(|| format!("{} cannot be written", archive.display()))?;
    let control = Some(GuestControl { role: ControlRole::Update, rights: ControlRights::default() });
    Ok(Guest {
        initrd: Some(context.made("target/guests/initramfs.cpio")?),
        modules: vec![archive],
        cmdline: "console=ttyS0 loglevel=5 panic=1".to_owned(),
        vsock: Some(VsockConfig { cid: CID, peers: Vec::new(), control }),
        ..guest(NAME, kernel, GUEST_MEMORY)
    })
}

/// The time in the tool's line `sent 1.4 MiB in 0.143 s (…)`.
fn time_in(line: &str) -> Option<f64> {
    let (_, time) = line.strip_prefix(SENT)?.split_once(" in ")?;
    time.split_once(" s ")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_in_the_tool_s_line() {
        assert_eq!(time_in("sent 1.4 MiB in 0.143 s (9.9 MiB a second)"), Some(0.143));
        assert_eq!(time_in("preparation  40.2 ms, of which 20.0 ms on a CPU"), None);
    }
}
