// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host as an operator has it: started from a disc, and reached from outside over TCP, by certificate, through the
//! service in a guest that has the machine's network card. The tool, curl, promtool and a browser work there while the
//! host is updated.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use baton::config::{Backend, Device, Guest, Iommu, Model, Network};
use baton::connection::Identity;
use baton::image::iso;
use baton::paths::workspace;
use bundle::AssignedConfig;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::{Kernel, built, has_grub};
use e2e::recipe::{Recipe, folder};
use e2e::tool::PLAYS_TOOL;
use lab::Machine;
use serde_json::Value;

use super::Rule;
use super::serve::write_certificates;
use super::service_guest::with_service;

mod proxy;

pub const LONG_RULES: &[Rule] = &[(
    "a_host_from_a_disc_is_operated_and_updated_from_outside_by_tool_curl_promtool_and_a_browser",
    is_operated_from_outside,
)];

const SERVICES: &str = "services";
const OTHER: &str = "other";
const DRIVERS: &[&str] = &["virtio_pci", "virtio_net", "vmw_vsock_virtio_transport"];
/// In the guest.
const SERVICE_PORT: u16 = 9464;
/// The firmware, GRUB and a Linux start, on a machine that does other work as well.
const LIMIT: Duration = Duration::from_secs(300);

/// A picture of this size with nothing in it is smaller.
const EMPTY_PICTURE_BYTES: usize = 20_000;

const SERVE: &str = r#"
ip link set lo up
card=$(ls /sys/class/net | grep ^e); ip addr add 10.0.2.15/24 dev $card; ip link set $card up
baton_serve --host rack1=vsock:2 --listen tcp:0.0.0.0:9464 --access /access.toml --audit /tmp/audit &
echo "services: ready"
exec sh
"#;

/// The guest that has the card, and the service.
fn services(folder: &Path) -> Result<Guest> {
    let functions = vec![AssignedConfig { selector: "1af4:1041".to_owned(), ..AssignedConfig::default() }];
    Ok(Guest { functions, ..with_service(folder, SERVICES, DRIVERS, SERVE)? })
}

/// The machine starts from the disc; its only way out is the card.
fn start(folder: &Path, service: u16) -> Result<Host> {
    let forward = vec![format!("tcp:127.0.0.1:{service}-:{SERVICE_PORT}")];
    let card = Network { model: Model::VirtioNet, backend: Backend::User { forward }, mac: None };
    let recipe = Recipe::new().cpus(2).memory_mib(1280).with_devices(Iommu::Intel, vec![Device::Network(card)]);
    let recipe = recipe.beating(OTHER)?.guest(services(folder)?);
    let mut host = recipe.start_changed(Some(&recipe.bundle()?), |folder, machine| {
        let (disc, bundle) = (folder.join("baton.iso"), machine.bundle.clone().context("a bundle")?);
        iso::build(&built("baton.elf")?, &bundle, &machine.cmdline, &disc)?;
        Ok(Machine { disc: Some(disc), ..machine })
    })?;
    host.limit(LIMIT);
    Ok(host)
}

/// The outside: a client's certificate, and the address at which the service is reached.
struct Outside {
    identity: Identity,
    port: u16,
}

impl Outside {
    /// Runs the tool; returns its output.
    fn tool(&self, arguments: &[&str]) -> Result<String> {
        let mut tool = Command::new(std::env::current_exe()?);
        tool.env(PLAYS_TOOL, "1").env("BATON_CONNECT", format!("https://localhost:{}/rack1", self.port));
        let Identity { certificate, key, authority } = &self.identity;
        for (name, path) in [("BATON_CERT", certificate), ("BATON_CERT_KEY", key), ("BATON_CA", authority)] {
            tool.env(name, path.as_ref().context("a file")?);
        }
        output(tool.args(arguments))
    }

    fn curl(&self, path: &str) -> Result<String> {
        let mut curl = Command::new("curl");
        let Identity { certificate, key, authority } = &self.identity;
        for (option, path) in [("--cert", certificate), ("--key", key), ("--cacert", authority)] {
            curl.arg(option).arg(path.as_ref().context("a file")?);
        }
        output(
            curl.args(["-sS", "--fail-with-body", "--max-time", "60"])
                .arg(format!("https://localhost:{}{path}", self.port)),
        )
    }

    /// Checks that a client without a certificate is refused in the handshake.
    fn is_closed_without_certificate(&self) -> Result<()> {
        let mut curl = Command::new("curl");
        curl.arg("--cacert").arg(self.identity.authority.as_ref().context("a file")?).args(["-sS", "--max-time", "60"]);
        let refused = curl.arg(format!("https://localhost:{}/api/v1/hosts", self.port)).output()?;
        let reason = String::from_utf8_lossy(&refused.stderr);
        ensure!(!refused.status.success() && reason.contains("alert"), "a client without a certificate: {reason}");
        Ok(())
    }

    /// Waits until the service is there and sees the host.
    fn is_reached(&self) -> Result<()> {
        let end = Instant::now() + BOOT_LIMIT;
        loop {
            match self.curl("/api/v1/hosts") {
                Ok(hosts) if hosts.contains("\"state\":\"connected\"") => return Ok(()),
                last => ensure!(Instant::now() < end, "the service is not reached: {last:?}"),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Returns the updates that the metrics count.
    fn updates(&self) -> Result<f64> {
        let metrics = self.metrics()?;
        let count = metrics.lines().find_map(|line| line.strip_prefix("baton_updates_total{host=\"rack1\"} "));
        Ok(count.unwrap_or("0").parse()?)
    }

    /// Scrapes the metrics as Prometheus does; its checker finds no fault in them.
    fn metrics(&self) -> Result<String> {
        let metrics = self.curl("/metrics")?;
        let mut promtool = Command::new(promtool()?);
        promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = promtool.spawn().context("promtool does not start")?;
        child.stdin.take().context("its input")?.write_all(metrics.as_bytes())?;
        let checked = child.wait_with_output()?;
        ensure!(checked.status.success(), "promtool: {}", String::from_utf8_lossy(&checked.stdout));
        Ok(metrics)
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    ensure!(output.status.success(), "{command:?}: {out}{err}");
    Ok(out)
}

/// Prometheus's checker: unpacked by set-up, or installed.
fn promtool() -> Result<PathBuf> {
    let unpacked = workspace()?.join("target/prometheus/usr/bin/promtool");
    Ok(if unpacked.is_file() { unpacked } else { PathBuf::from("promtool") })
}

/// Returns whether all programs are here that work outside the host.
pub fn is_possible() -> bool {
    let runs = |program: &Path| Command::new(program).arg("--version").output().is_ok();
    has_grub()
        && Kernel::Default.drivers().is_ok()
        && runs(Path::new("curl"))
        && promtool().is_ok_and(|promtool| runs(&promtool))
        && lab::browser::installed().is_some()
}

/// The page as the documents show it: `BLESS=1` puts this one there.
fn take_picture(browser: &Path, folder: &Path, address: &str) -> Result<()> {
    let picture = lab::browser::picture(browser, folder, address, &folder.join("service.png"));
    let picture = picture.context("the browser takes no picture of the page")?;
    ensure!(picture.starts_with(b"\x89PNG") && picture.len() > EMPTY_PICTURE_BYTES, "{} bytes", picture.len());
    if std::env::var_os("BLESS").is_some() {
        fs::write(workspace()?.join("docs/pictures/service.png"), picture)?;
    }
    Ok(())
}

/// Waits for what the page shows.
fn page_shows(seen: &Receiver<String>, expected: &str) -> Result<()> {
    let shown = seen.recv_timeout(LIMIT).with_context(|| format!("the page does not show {expected:?}"))?;
    ensure!(shown == expected, "the page shows {shown:?}, not {expected:?}");
    Ok(())
}

fn is_operated_from_outside() -> Result<()> {
    let folder = folder()?;
    let browser = lab::browser::that_runs(folder.path(), "no browser works through an update").context("no browser")?;
    let identity = write_certificates(folder.path())?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut host = start(folder.path(), port)?;
    host.logs(&["loaded by Multiboot2"])?;
    host.guest_prints(SERVICES, "services: ready")?;
    let outside = Outside { identity, port };
    outside.is_reached()?;
    let (page, seen) = proxy::serve(port, &outside.identity)?;
    let _open = lab::browser::Open::at(&browser, folder.path(), &format!("http://{page}/visit"))?;
    page_shows(&seen, "rack1 connected: other running, services running")?;
    ensure!(outside.updates()? == 0.0, "an update that was not asked for");
    ensure!(outside.tool(&["vm", "list"])?.contains(OTHER), "the tool does not list the guest");
    let updated = outside.tool(&["update", "--json"])?;
    let report: Value = serde_json::from_str(updated.lines().last().context("no report")?)?;
    ensure!(report["generation"] == 2, "{updated}");
    page_shows(&seen, "updated: other running, services running")?;
    ensure!(outside.updates()? == 1.0, "the update is not counted");
    let updates = outside.curl("/api/v1/hosts/rack1/info")?;
    ensure!(updates.contains("\"generation\":2"), "{updates}");
    // A guest that the outside stops and starts through the same path.
    outside.tool(&["vm", "stop", OTHER, "--yes"])?;
    page_shows(&seen, "stopped: other stopped, services running")?;
    outside.tool(&["vm", "start", OTHER])?;
    page_shows(&seen, "started: other running, services running")?;
    take_picture(&browser, folder.path(), &format!("http://{page}/framed"))?;
    outside.is_closed_without_certificate()?;
    host.beats(OTHER, 2)?;
    host.powers_off()
}
