// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates between releases under load: release 0.1.0, rebuilt from its commit, to this tree's image and back, each
//! operated by its own tool (`make test-all PART=release`).

use std::env;
use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton::paths::workspace;
use e2e::place::built;
use e2e::recipe::Recipe;
use e2e::relay::{self, RELAY};
use e2e::tool::PLAYS_TOOL;
use lab::checks::is_strict;
use lab::{Machine, Process};
use serde_json::Value;
use tempfile::TempDir;

use super::{Rule, report};

pub const LONG_RULES: &[Rule] = &[("guests_go_on_from_0_1_0_to_this_image_and_back", guests_go_on_between_releases)];

const RELEASE: &str = "0.1.0";
/// The status of `scripts/release.sh` where the clone lacks the release's commit.
const NO_COMMIT: i32 = 3;
/// Longest wait.
const LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(200);
/// The new image's answer to the order is out after so long.
const SETTLING: Duration = Duration::from_secs(1);
/// A crowded machine may leave one of the emulator's CPUs without a core for longer than an update waits.
const ATTEMPTS: u32 = 5;

/// Two guests of ours, which check their registers and memory for ever, and a Linux with all its CPUs busy.
const HOST: &str = r#"
[host]
memory = "1GiB"
when_done = "stay"
[[guest]]
name = "idle"
kernel = "KEEPER"
cmdline = "seed=1 do=fresh,stain,wait"
memory = "16MiB"
[[guest]]
name = "busy"
kernel = "KEEPER"
cmdline = "seed=2 rounds=2000000000 do=fresh,stain,registers"
memory = "16MiB"
[[guest]]
name = "linux"
kernel = "LINUX"
initrd = "INITRD"
cmdline = "console=ttyS0 agent=churn:500"
vcpus = 2
memory = "256MiB"
"#;

/// The tool that operates the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    /// The release's own.
    Released,
    /// This tree's.
    Ours,
}

/// The machine, and what it has reported on COM1.
struct Site {
    folder: TempDir,
    release: PathBuf,
    _machine: Process,
    log: Arc<Mutex<Vec<String>>>,
    attached: u32,
}

/// A tool that holds the host's control line. Dropping it lets go of the line.
struct Attached<'s> {
    site: &'s Site,
    tool: Tool,
    name: String,
    up: Child,
}

/// The release's folder; `None` where it cannot be had.
fn released() -> Result<Option<PathBuf>> {
    let root = workspace()?;
    let output = Command::new(root.join("scripts/release.sh")).arg(RELEASE).output()?;
    if output.status.code() == Some(NO_COMMIT) {
        ensure!(!is_strict(), "{}", String::from_utf8_lossy(&output.stderr));
        eprint!("left out: {}", String::from_utf8_lossy(&output.stderr));
        return Ok(None);
    }
    ensure!(output.status.success(), "scripts/release.sh: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Some(root.join("target/releases").join(RELEASE)))
}

fn guests_go_on_between_releases() -> Result<()> {
    let Some(release) = released()? else { return Ok(()) };
    let mut site = Site::boot(release)?;
    let (old, new) = (site.release.join("baton.elf"), built("baton.elf")?);
    let (old, new) = (old.to_string_lossy().into_owned(), new.to_string_lossy().into_owned());
    site.operated_by(Tool::Released, |host| {
        host.guests_go_on()?;
        host.replaces(&["update", "--image", &new], 2)
    })?;
    site.operated_by(Tool::Ours, |host| {
        host.is_generation(2)?;
        host.guests_go_on()?;
        // An image without a security version is older than ours: the host wants to be asked for it.
        let refused = host.run(&["update", "--image", &old])?;
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(refused.status.code() == Some(1) && error.contains("give --allow-downgrade"), "{error}");
        host.replaces(&["update", "--allow-downgrade", "--image", &old], 3)
    })?;
    site.operated_by(Tool::Released, |host| {
        host.is_generation(3)?;
        host.guests_go_on()?;
        host.replaces(&["update", "--previous"], 4)
    })?;
    site.operated_by(Tool::Ours, |host| {
        host.is_generation(4)?;
        host.guests_go_on()?;
        host.replaces(&["update", "--previous"], 5)
    })?;
    site.operated_by(Tool::Released, |host| {
        host.is_generation(5)?;
        host.guests_go_on()
    })?;
    for generation in 2..=5 {
        let parts = [format!("generation {generation}, handed over by {RELEASE}"), ", in version 3".to_owned()];
        ensure!(site.has_logged(&parts), "{parts:?} is not in {:#?}", site.lines());
    }
    Ok(())
}

impl Site {
    /// Starts the release's image, with a bundle that the release's tool has made.
    fn boot(release: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let files = [
            ("KEEPER", built("guests/keeper.elf")?),
            ("LINUX", built("kernels/default/vmlinuz")?),
            ("INITRD", built("guests/initramfs.cpio")?),
        ];
        let host = files.iter().fold(HOST.to_owned(), |text, (word, path)| text.replace(word, &path.to_string_lossy()));
        fs::write(folder.path().join("host.toml"), host)?;
        let image = release.join("baton.elf");
        let made = Command::new(release.join("baton"))
            .args(["bundle", "host.toml", "-o", "made.cpio"])
            .current_dir(folder.path())
            .env("BATON_IMAGE", &image)
            .output()?;
        ensure!(made.status.success(), "{made:?}");
        let bundle = fs::read(folder.path().join("made.cpio"))?;
        let recipe = Recipe::new().cpus(2).memory_mib(1024).options("tsc=skip");
        let machine = Machine { image, ..recipe.machine(folder.path(), Some(&bundle))? };
        let listener = UnixListener::bind(folder.path().join("line.sock"))?;
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = log.clone();
        let machine = Process::spawn_emulator(machine.command(&folder.path().join("line.sock"))?, move |line| {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.text);
        })?;
        relay::serve(accept(&listener)?, &folder.path().join("relay.sock"))?;
        Ok(Self { folder, release, _machine: machine, log, attached: 0 })
    }

    fn lines(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether a line of the host's log contains all of `parts`.
    fn has_logged(&self, parts: &[String]) -> bool {
        self.lines().iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }

    /// Does this while a tool of this kind holds the line.
    fn operated_by(&mut self, tool: Tool, act: impl FnOnce(&Attached<'_>) -> Result<()>) -> Result<()> {
        self.attached += 1;
        let name = format!("host-{}", self.attached);
        let mut up = self.command(tool)?;
        up.args(["up", "host.toml", "--name", &name]).arg("--qemu").arg(env::current_exe()?);
        let up = up.stdout(File::create(self.folder.path().join(&name))?).stderr(Stdio::null()).spawn()?;
        let attached = Attached { site: self, tool, name, up };
        let acted = attached.answers().and_then(|()| act(&attached));
        acted.with_context(|| format!("{tool:?}, {}; the host: {:#?}", attached.name, self.lines()))
    }

    fn command(&self, tool: Tool) -> Result<Command> {
        let (program, image) = match tool {
            Tool::Released => (self.release.join("baton"), self.release.join("baton.elf")),
            Tool::Ours => (env::current_exe()?, built("baton.elf")?),
        };
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("XDG_RUNTIME_DIR", self.folder.path()).env("BATON_IMAGE", image);
        command.env(RELAY, self.folder.path().join("relay.sock")).stdin(Stdio::null());
        if tool == Tool::Ours {
            command.env(PLAYS_TOOL, "1");
        }
        Ok(command)
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
    }
}

impl Attached<'_> {
    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.site.command(self.tool)?;
        command.args(arguments).args(["--name", &self.name]);
        Ok(command)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(arguments)?.output()?)
    }

    /// Returns what a command prints as JSON, an object a line.
    fn json(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let output = self.run(arguments)?;
        ensure!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    fn answers(&self) -> Result<()> {
        wait_for("an answer of the host", || Ok(self.run(&["info"])?.status.success()))
    }

    fn is_generation(&self, expected: u64) -> Result<()> {
        let info = self.json(&["info", "--json"])?;
        ensure!(info[0]["generation"] == expected, "{info:?}");
        Ok(())
    }

    /// Linux reports three times more, with nothing wrong and every CPU further; our guests run, and the busy one
    /// has left its CPU and come back.
    fn guests_go_on(&self) -> Result<()> {
        let (reports, before) = (self.reports()?.len(), self.exits()?);
        wait_for("three reports of Linux", || Ok(self.reports()?.len() >= reports + 3))?;
        for report in &self.reports()?[reports..] {
            ensure!(report.contains(" wrong=0 ") && report.contains(" backwards=0"), "{report}");
        }
        wait_for("an exit of the busy guest", || Ok(self.exits()? > before))
    }

    /// Exits of the busy guest; all guests run.
    fn exits(&self) -> Result<u64> {
        let vms = self.json(&["vm", "list", "--json"])?;
        ensure!(vms.len() == 3 && vms.iter().all(|vm| vm["state"] == "running"), "{vms:?}");
        let busy = vms.iter().find(|vm| vm["name"] == "busy").context("a busy guest")?;
        busy["exits_total"].as_u64().context("a count")
    }

    /// The reports of Linux since the tool holds the line.
    fn reports(&self) -> Result<Vec<String>> {
        let screen = fs::read_to_string(self.site.folder.path().join(&self.name))?;
        let whole = screen.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let reports = whole.lines().filter_map(|line| line.strip_prefix("linux")?.split_once("churn "));
        Ok(reports.map(|(_, report)| format!(" {report} ")).collect())
    }

    /// An order by which another image comes to run. Whether it does is read in the host's log: the answer is in the
    /// words of the new image, which this tool need not understand.
    fn replaces(&self, arguments: &[&str], generation: u64) -> Result<()> {
        let parts = [format!("generation {generation}, handed over by")];
        for _ in 0..ATTEMPTS {
            let mut order = self.command(arguments)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            let ended = || Ok(self.site.has_logged(&parts) || order.try_wait()?.is_some());
            let waited = wait_for("the other image", ended);
            thread::sleep(SETTLING);
            order.kill()?;
            let output = order.wait_with_output()?;
            waited?;
            if self.site.has_logged(&parts) {
                return Ok(());
            }
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_starved = ["waited too long", "was not prepared after"].iter().any(|why| error.contains(why));
            ensure!(is_starved, "{arguments:?}: {error}");
            report::note_repeated(&error);
        }
        bail!("{ATTEMPTS} updates in a row waited too long for a CPU of the emulator")
    }
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    while !is_there()? {
        ensure!(Instant::now() < deadline, "{what} did not come within {LIMIT:?}");
        thread::sleep(POLL);
    }
    Ok(())
}

/// The machine's end of its control line.
fn accept(listener: &UnixListener) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let mut line = None;
    wait_for("the emulator", || {
        line = listener.accept().ok().map(|(line, _)| line);
        Ok(line.is_some())
    })?;
    let line = line.context("a line")?;
    line.set_nonblocking(false)?;
    Ok(line)
}
