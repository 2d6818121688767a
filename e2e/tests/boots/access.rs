// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that take signed requests only, reached over a serial line without a broker.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton::client::Client;
use baton::config::Control;
use baton::connection::Address;
use baton::keys;
use bundle::{ControlKeyConfig, ControlRole};
use e2e::host::BOOT_LIMIT;
use e2e::place::Build;
use e2e::recipe::Recipe;
use e2e::serial::{Noise, SerialHost};
use e2e::tool::{Operator, Outcome};
use session::Signer;
use wire::{Refusal, RefusalCode, ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] =
    &[("a_host_with_control_keys_takes_what_they_have_signed", a_host_with_control_keys_takes_what_they_have_signed)];

pub const LONG_RULES: &[Rule] = &[
    (
        "an_image_and_a_bundle_without_a_key_that_opens_the_serial_line_come_in_a_session",
        an_image_and_a_bundle_that_opens_the_serial_line_come_in_a_session,
    ),
    ("forged_and_unanswered_requests_cost_guests_nothing", forged_and_unanswered_requests_cost_guests_nothing),
    ("a_host_that_has_ended_takes_no_request_without_a_session", a_host_that_has_ended_takes_no_request),
];

const GUEST: &str = "keeper";
const QUIET: Noise = |_, byte| byte;
/// The status of a command that the host has refused.
const REFUSED: Option<i32> = Some(4);

/// A host with control keys, and an operator who has the secret ones.
struct World {
    host: SerialHost,
    operator: Operator,
    keys: Vec<ControlKeyConfig>,
}

impl World {
    /// A host with keys that have the names of their roles.
    fn start(change: impl FnOnce(Recipe) -> Recipe) -> Result<Self> {
        let operator = Operator::with("")?;
        let roles = [("read", ControlRole::Read), ("update", ControlRole::Update), ("revoked", ControlRole::Revoked)];
        let mut keys = Vec::new();
        for (name, role) in roles {
            let (key, _) = keys::generate(&operator.folder().join(name))?;
            keys.push(ControlKeyConfig { name: name.to_owned(), key: key.bytes(), role });
        }
        let host = SerialHost::start(&change(recipe(keys.clone(), false)?), QUIET)?;
        Ok(Self { host, operator, keys })
    }

    fn file(&self, key: &str) -> PathBuf {
        self.operator.folder().join(key)
    }

    /// Returns the tool's output with this key, or without one.
    fn run(&self, key: Option<&str>, arguments: &[&str]) -> Result<Outcome> {
        let port = self.host.address();
        let key = key.map_or_else(Vec::new, |key| vec!["--key", key]);
        self.operator.run(&[&["--connect", &port], &key[..], arguments].concat())
    }

    /// The tool is refused, and prints these parts.
    fn is_refused(&self, key: Option<&str>, arguments: &[&str], parts: &[&str]) -> Result<()> {
        let output = self.run(key, arguments)?;
        ensure!(
            output.status == REFUSED && parts.iter().all(|part| output.err.contains(part)),
            "{parts:?}: {output:?}"
        );
        Ok(())
    }

    fn client(&self, key: Option<&str>) -> Result<Client> {
        let address: Address = self.host.address().parse()?;
        Client::reach(&address, key.map(|key| keys::secret(&self.file(key))).transpose()?)
    }

    /// A line without a session, on which requests are sent as they are.
    fn line(&self) -> Result<Client> {
        let address: Address = self.host.address().parse()?;
        Ok(Client::on(baton::connection::open(&address)?))
    }

    /// A session of a client that makes each frame itself.
    fn session(&self, line: &mut Client, key: &str) -> Result<Signer> {
        let mut signer = Signer::new(keys::secret(&self.file(key))?);
        match line.request(signer.begin())? {
            ReplyBody::Challenge(challenge) => signer.take(Some(challenge)),
            other => bail!("no challenge: {other:?}"),
        }
        Ok(signer)
    }
}

fn recipe(keys: Vec<ControlKeyConfig>, is_serial_open: bool) -> Result<Recipe> {
    let control = Control { keys, is_serial_open };
    Ok(Recipe { control, ..Recipe::new().beating(GUEST)? })
}

fn refusal(result: Result<ReplyBody>) -> Result<Refusal> {
    match result {
        Ok(reply) => bail!("not refused: {reply:?}"),
        Err(error) => error.downcast::<Refusal>(),
    }
}

fn a_host_with_control_keys_takes_what_they_have_signed() -> Result<()> {
    let world = World::start(|recipe| recipe)?;
    world.is_refused(None, &["vm", "list"], &["takes signed requests only", "--key FILE"])?;
    world.is_refused(Some("revoked"), &["vm", "list"], &["the control key \"revoked\" is revoked"])?;
    let vms = world.run(Some("read"), &["vm", "list"])?.well()?;
    ensure!(vms.contains(GUEST) && vms.contains("running"), "{vms}");
    let needs = "has the role read, and this takes operate";
    world.is_refused(Some("read"), &["vm", "stop", "--yes", GUEST], &[needs])?;
    updates_in_a_session(&world)?;
    refuses_what_comes_again(&world)?;
    world.run(Some("update"), &["key", "revoke", "read"])?.well()?;
    world.is_refused(Some("read"), &["vm", "list"], &["the control key \"read\" is revoked"])?;
    // The tool itself begins another session with the next image, over another connection.
    let updated = world.run(Some("update"), &["update", "--confirm-within", "60"])?.well()?;
    ensure!(updated.contains("generation   3 ") && updated.contains("confirmed"), "{updated}");
    world.is_refused(Some("read"), &["vm", "list"], &["the control key \"read\" is revoked"])?;
    let events = world.run(Some("update"), &["events"])?.well()?;
    for part in ["signed requests only", needs, "was not carried out", "control key read was revoked by update"] {
        ensure!(events.contains(part), "no event with {part:?}: {events}");
    }
    Ok(())
}

/// One session: an update, and what comes after it.
fn updates_in_a_session(world: &World) -> Result<()> {
    let mut client = world.client(Some("update"))?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    match client.request_within(BOOT_LIMIT, update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("not the answer to an update: {other:?}"),
    }
    ensure!(client.info()?.generation == 2);
    client.order(RequestBody::VmPause { name: GUEST.to_owned() })?;
    client.order(RequestBody::VmResume { name: GUEST.to_owned() })
}

/// A frame that was carried out is sent again, and one that was changed on the line.
fn refuses_what_comes_again(world: &World) -> Result<()> {
    let mut line = world.line()?;
    let mut signer = world.session(&mut line, "update")?;
    let frame = signer.sign(&RequestBody::VmPause { name: GUEST.to_owned() }).context("a session")?;
    line.order(RequestBody::Signed(frame.clone()))?;
    line.order(RequestBody::Signed(signer.sign(&RequestBody::VmResume { name: GUEST.to_owned() }).context("one")?))?;
    let refused = refusal(line.request(RequestBody::Signed(frame.clone())))?;
    ensure!(refused.code == RefusalCode::Denied && refused.reason.contains("was not carried out"), "{refused:?}");
    let mut changed = signer.sign(&RequestBody::Info).context("a session")?;
    changed.body = RequestBody::PowerOff.to_bytes();
    let refused = refusal(line.request(RequestBody::Signed(changed)))?;
    ensure!(refused.reason.contains("the signature is not that of"), "{refused:?}");
    let info = line.request(RequestBody::Signed(signer.sign(&RequestBody::Info).context("a session")?))?;
    ensure!(matches!(info, ReplyBody::Info(_)), "the session goes on: {info:?}");
    Ok(())
}

fn an_image_and_a_bundle_that_opens_the_serial_line_come_in_a_session() -> Result<()> {
    let world = World::start(|recipe| recipe)?;
    let image = Build::Shipped.file()?.display().to_string();
    let updated = world.run(Some("update"), &["update", "--image", &image])?.well()?;
    ensure!(updated.contains(" MiB in ") && updated.contains("generation   2 "), "{updated}");
    world.is_refused(Some("read"), &["update", "--image", &image], &["has the role read, and this takes update"])?;
    world.is_refused(None, &["vm", "list"], &["takes signed requests only"])?;
    // A bundle that does not list the key any more, and has `serial = "open"`.
    let fewer = world.keys.iter().filter(|key| key.name != "read").cloned().collect();
    let path = world.file("fewer.bundle");
    std::fs::write(&path, recipe(fewer, true)?.bundle()?)?;
    let path: &Path = &path;
    let updated = world.run(Some("update"), &["update", &path.display().to_string()])?.well()?;
    ensure!(updated.contains("generation   3 "), "{updated}");
    world.is_refused(Some("read"), &["vm", "list"], &["this host has no control key"])?;
    let keys = world.run(Some("update"), &["key", "list"])?.well()?;
    ensure!(keys.contains("update") && keys.contains("revoked") && !keys.contains("read "), "{keys}");
    takes_unsigned_requests(&world)
}

/// With `serial = "open"` unsigned requests are carried out, an update among them. A signed one still has the role of
/// its key.
fn takes_unsigned_requests(world: &World) -> Result<()> {
    let vms = world.run(None, &["vm", "list"])?.well()?;
    ensure!(vms.contains(GUEST) && vms.contains("running"), "{vms}");
    world.run(None, &["vm", "stop", "--yes", GUEST])?.well()?;
    let updated = world.run(None, &["update"])?.well()?;
    ensure!(updated.contains("generation   4 "), "{updated}");
    world.is_refused(Some("revoked"), &["vm", "list"], &["the control key \"revoked\" is revoked"])
}

/// A peer on the line sends wrong signatures as fast as they are refused, and asks for sessions without end.
fn forged_and_unanswered_requests_cost_guests_nothing() -> Result<()> {
    let world = World::start(|recipe| recipe)?;
    let mut line = world.line()?;
    let mut signer = world.session(&mut line, "update")?;
    line.request(RequestBody::Signed(signer.sign(&RequestBody::Info).context("a session")?))?;
    let mut forged = signer.sign(&RequestBody::PowerOff).context("a session")?;
    forged.signature[0] ^= 1;
    refusal(line.request(RequestBody::Signed(forged.clone())))?;
    drop(line);
    // Later ones are many, and of those that are recorded each may be another refusal.
    let events = world.run(Some("update"), &["events"])?.well()?;
    ensure!(events.contains("is not that of the control key"), "{events}");
    let mut line = world.line()?;
    for _ in 0..3 {
        line.request(signer.begin())?;
    }
    let (end, mut checked, mut unchecked) = (Instant::now() + Duration::from_secs(35), 0, 0);
    while Instant::now() < end {
        let refused = refusal(line.request(RequestBody::Signed(forged.clone())))?;
        match refused.code {
            RefusalCode::Denied => checked += 1,
            RefusalCode::Exhausted => unchecked += 1,
            other => bail!("{other:?}: {refused}"),
        }
    }
    ensure!(checked >= 16 && unchecked > checked, "{checked} were checked, {unchecked} were not");
    drop(line);
    // The limit that the refusals state.
    sleep(Duration::from_secs(1));
    let events = world.run(Some("update"), &["events"])?.well()?;
    for part in ["challenges were not answered within 30 s", "more were refused"] {
        ensure!(events.contains(part), "no event with {part:?}: {events}");
    }
    let vms = world.run(Some("read"), &["vm", "list"])?.well()?;
    ensure!(vms.contains("running"), "{vms}");
    Ok(())
}

fn a_host_that_has_ended_takes_no_request() -> Result<()> {
    let asked = "selftest=panic-when-asked panic=halt";
    let world = World::start(|recipe| recipe.with_fault_points().options(asked))?;
    // It ends when it is asked for events.
    let _ = world.run(Some("read"), &["events"])?;
    world.host.logs("self-test, as asked")?;
    for key in [None, Some("update")] {
        let output = world.run(key, &["info"])?;
        ensure!(output.status != Some(0) && output.err.contains("this host has ended"), "{output:?}");
        ensure!(output.err.contains("COM1"), "{output:?}");
    }
    Ok(())
}
